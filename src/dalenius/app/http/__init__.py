"""The HTTP API: what owners and analysts on other machines meet. Needs the extra `serve`.

A request goes through `guard` (who is it, how much at once, how large), then a route, then the curator's façade, in a
thread. The analyst is hostile, and so is the network.

```
guard ──► routes/* ──► service ──► Curator, Analyst, Tokens
 token     JSON in      threads,     the same as the
 limits    and out      jobs, pace   command line uses
```
"""
