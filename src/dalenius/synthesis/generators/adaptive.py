from __future__ import annotations
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
import numpy as np
from dalenius.synthesis.measurer import Measurer, by_cells, shares
from dalenius.synthesis.models.pool import Pool
from dalenius.synthesis.models.tree import pair_table, spanning, steps
from dalenius.synthesis.sampling import ancestral
from dalenius.synthesis.start import Candidate, begin, pairs
from dalenius.synthesis.generators.tree import best_levels
CFG=dict(weights=(.15,.03,.42,.05,.35), tree_sigma_for=20, extra=18, pool=8, pull=.005, rounds=30, levels=(8,16,32), ways=(2,3), slack=1.0, most=1e9)
def adaptive(m, rng=np.random.default_rng(0), log=print):
    C=CFG; parts=shares(m.left, C['weights'])
    start=begin(m,parts[0],C['levels']); d=len(start.shares); sizes=m.domain.sizes
    sg=float(Fraction(d-1)/(2*parts[2]))**.5
    cand=best_levels(pairs(m,start,parts[1]),sg)
    edges=spanning(cand,lambda e:e.view.columns,d)
    views=[e.view for e in edges if e.gain(sg)>0]
    ms=m.measure(list(zip(views,by_cells(parts[2],views))))
    tables={e.view.columns:pair_table(e,start.shares,start.rows,C['pull']) for e in ms}
    deg=[sum(a in p for p in tables) for a in range(d)]
    st=steps(tables,start.shares,int(np.argmax(deg)))
    pool=Pool(ancestral(st,int(C['pool']*start.rows),rng),start.rows)
    pool.add(start.measured,C['pull']); pool.add(ms,C['pull']); pool.fit(5)
    done={v.columns for v in views}
    ns=len(C['weights'])-3; rounds=ns//2
    for k in range(rounds):
        rs,rm=parts[3+2*k],parts[4+2*k]
        vs=[]
        for w in C['ways']:
            for c in combinations(range(d),w):
                seen=set()
                for l in range(len(C['levels'])):
                    v=start.view(c,l)
                    if v.shape not in seen and min(v.shape)>1 and v.cells<C['most'] and (v.columns,v.shape) not in done: seen.add(v.shape); vs.append(v)
        dist=m.distances([(v,np.rint(pool.table(v)).astype(int)) for v in vs],rs)
        s2=float(Fraction(C['extra'])/(2*rm))**.5
        cs=[Candidate(v,float(x)) for v,x in zip(vs,dist.values)]
        best={}
        for c in cs:
            if c.view.columns not in best or c.gain(s2)>best[c.view.columns].gain(s2): best[c.view.columns]=c
        cs=sorted(best.values(),key=lambda c:-c.gain(s2))
        pick=[];cov={}
        for c in cs:
            if len(pick)>=C['extra'] or c.gain(s2)<=C['slack']*dist.sigma: break
            # overlap: a triple whose pairs have been covered by picks already
            ps=set(combinations(c.view.columns,2))
            if sum(cov.get(p,0) for p in ps)>=len(ps): continue
            for p in ps: cov[p]=cov.get(p,0)+1
            pick.append(c)
        if log: log(k,len(vs),'sigma',dist.sigma,s2,[(c.view.columns,c.view.shape,int(c.distance)) for c in pick][:30])
        pv=[c.view for c in pick]
        if pv:
            done|={(v.columns,v.shape) for v in pv}
            pool.add(m.measure(list(zip(pv,by_cells(rm,pv)))),C['pull'])
        pool.fit(C['rounds'])
    class Mod:
        def sample(self,n,rng): return pool.sample(n,rng)
    Mod.pool=pool
    return Mod()
