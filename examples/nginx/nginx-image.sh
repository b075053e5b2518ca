#!/bin/bash
# SPDX-License-Identifier: MIT
# Adds what the nginx scenario needs to the guest's files: its two programs, nginx's configuration, a PostgreSQL cluster
# with its tables (made here, at full speed), and an image of the slow disk that holds one of them.
set -eux
R=$T/img/rootfs; S=$T/scripts; B=/usr/lib/postgresql/15/bin
gcc -O1 -static -o "$T/img/bin/webload" "$S/webload.c" -lpthread
cp "$S/webapp.c" "$R/tb/"
chroot "$R" gcc -O1 -o /tb/webapp /tb/webapp.c -I/usr/include/postgresql -lpq -lpthread
cat > "$R/etc/nginx/nginx.conf" <<'C'
user www-data;
worker_processes 1;
pid /run/nginx.pid;
error_log /tmp/nginx-error.log;
events { worker_connections 256; }
http {
    access_log /tmp/nginx-access.log;
    keepalive_requests 100000;
    upstream app { server 127.0.0.1:9000; keepalive 8; }
    server {
        listen 80;
        location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; }
    }
}
C
D=/var/lib/tb-pg
rm -rf "$R$D" "$R/slow"
install -d -o "$(chroot "$R" id -u postgres)" -g "$(chroot "$R" id -g postgres)" "$R$D" "$R/slow" \
    "$R/var/run/postgresql"
mountpoint -q "$R/proc" || mount -t proc proc "$R/proc"
mountpoint -q "$R/dev" || mount --bind /dev "$R/dev"
mountpoint -q "$R/dev/shm" || mount -t tmpfs tmpfs "$R/dev/shm"
trap 'umount "$R/dev/shm"; umount "$R/proc" "$R/dev"' EXIT
as() { chroot "$R" su postgres -s /bin/bash -c "$1"; }
as "$B/initdb -D $D -A trust --locale=C >/dev/null"
cat >> "$R$D/postgresql.conf" <<'C'
listen_addresses = '*'
max_connections = 40
jit = off
max_parallel_workers_per_gather = 0
autovacuum = off
unix_socket_directories = '/tmp'
C
echo 'host all all 10.77.0.0/24 trust' >> "$R$D/pg_hba.conf"
as "$B/pg_ctl -D $D -o '-p 54329 -c listen_addresses=' -l /tmp/pg.log -w start"
as "psql -h /tmp -p 54329 -v ON_ERROR_STOP=1 postgres" <<'Q'
CREATE TABLESPACE slow LOCATION '/slow';
CREATE TABLE items (id int PRIMARY KEY, body text);
INSERT INTO items SELECT i, repeat(md5(i::text), 2) FROM generate_series(1, 5000) i;
CREATE TABLE archive (id int PRIMARY KEY, body text) TABLESPACE slow;
ALTER TABLE archive ALTER body SET STORAGE PLAIN;
INSERT INTO archive SELECT i, repeat(md5(i::text), 100) FROM generate_series(1, 4000) i;
VACUUM (FREEZE, ANALYZE);
CHECKPOINT;
Q
as "$B/pg_ctl -D $D -w -m fast stop"
rm -f "$T/img/slow.raw"; truncate -s 64M "$T/img/slow.raw"
mke2fs -q -t ext4 -d "$R/slow" -O ^has_journal "$T/img/slow.raw"
rm -rf "$R"/slow/*
