"""The console: a web page for owners, analysts and auditors, in the same server. Needs the extra `serve`.

Everything it does is also in the HTTP API; pages call the same service, in threads, under the same time rules. Text
from data or policies is only ever shown as text.
"""
