#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""client -> web (nginx, and an application behind it) -> db (PostgreSQL): quick queries, and a few that are slow in
known ways. README.md tells what it needs."""
import sys; sys.path.insert(0, __file__.rsplit('/', 1)[0])
from tb import *
import random

POSTGRES = '/usr/lib/postgresql/15/bin'
CONNECTIONS, EACH = 4, 40
# (connection, place on it) -> kind of a request that is slow
SLOW = {(0, 6): 'compute', (1, 12): 'compute', (2, 18): 'compute', (3, 24): 'compute',
        (2, 4): 'disk', (3, 10): 'disk', (0, 20): 'disk', (1, 30): 'disk',
        (0, 12): 'hold', (1, 13): 'lock', (0, 26): 'hold', (1, 27): 'lock', (0, 36): 'hold', (1, 37): 'lock'}

def requests():
    rnd, out = random.Random(5), []
    for place in range(EACH):
        for c in range(CONNECTIONS):
            kind = SLOW.get((c, place), 'key')
            disks = sum(1 for r in out if r[2] == 'disk')
            number = {'disk': 20 + 70 * disks, 'hold': 7, 'lock': 7}.get(kind, rnd.randrange(100, 5000))
            out.append((c, rnd.randrange(30000, 90000), kind, len(out) + 1, number))
    return out

def spec(v, name, load):
    open(f'{v.share}/{name}', 'w').write(''.join('%d %d %s %d %d\n' % r for r in load))

def main():
    scenario = 'nginx-postgresql'
    net_up()
    disk = RUN + '/slow.raw'
    shutil.copy(IMG + '/slow.raw', disk)
    slow = ['-drive', f'file={disk},if=none,id=d1,format=raw,cache=none,aio=threads,throttling.iops-total=40',
            '-device', 'virtio-blk-pci,drive=d1']
    vms = [VM('n1', 'client'), VM('n2', 'web'), VM('n3', 'db', cpus=2, extra=slow)]
    try:
        boot(vms); c, w, d = vms
        ver = {v.host: versions(v) for v in vms}
        ver['web']['nginx'] = w.run('nginx -v 2>&1').strip()
        ver['db']['postgresql'] = d.run(f'{POSTGRES}/postgres --version').strip()
        load = requests()
        spec(c, 'spec', load)
        spec(c, 'warm', [(i, 1000, k, 0, n) for i in range(6) for k, n in (('key', 3), ('key', 4999), ('compute', 1))]
             + [(0, 0, 'disk', 0, 10)])
        shutil.copy(IMG + '/bin/webload', c.share)
        c.run('cp /share/spec /share/warm /tmp/; cp /share/webload /tb/')
        d.run('mount -o noatime /dev/vdb /slow && chown -R postgres /slow && mkdir -p /var/run/postgresql && '
              'su postgres -s /bin/bash -c '
              f'"{POSTGRES}/pg_ctl -D /var/lib/tb-pg -l /tmp/pg.log -w -t 120 start >/dev/null"')
        w.run('nohup /tb/webapp 9000 '
              '"host=10.77.0.13 user=postgres dbname=postgres gssencmode=disable sslmode=disable" 8 /tmp/app.log '
              '>/tmp/app.err 2>&1 & mkdir -p /var/log/nginx /var/lib/nginx; nginx; sleep 2')
        c.run('/tb/webload 10.77.0.12 80 /tmp/warm', timeout=120)
        each(vms, lambda v: v.run(f'/tb/rec create {scenario} base,sys,blk'))
        c0 = clocks(vms)
        start = each(vms, lambda v: json.loads(v.run(f'lttng start {scenario} >/dev/null; /tb/now')))
        time.sleep(0.5)
        w.run(': > /tmp/app.log')
        client = jl(c.run('/tb/webload 10.77.0.12 80 /tmp/spec', timeout=240))
        time.sleep(0.3)
        stop = each(vms, lambda v: json.loads(v.run('/tb/now')))
        each(vms, lambda v: v.run(f'lttng stop {scenario} >/dev/null; lttng destroy {scenario} >/dev/null'))
        c1 = clocks(vms)
        app = jl(w.run("tr -d '\\000' < /tmp/app.log"))
        print(len(client), len(app), w.run('cat /tmp/app.err'), d.run('tail -5 /tmp/pg.log'))
        for k in ('key', 'compute', 'disk', 'hold', 'lock'):
            print(k, sorted(round((r['t_recv'] - r['t_send']) / 1e6, 1) for r in client if r['kind'] == k))
        for v in vms:
            print(save(v, scenario, scenario), flush=True)
        truth(scenario, {'scenario': scenario, 'nodes': ver, 'client': client, 'app': app,
                         'recording': {'start': start, 'stop': stop}, 'clocks': clock_truth([c0, c1])}, '')
    finally:
        [v.stop() for v in vms]

if __name__ == '__main__':
    main()
