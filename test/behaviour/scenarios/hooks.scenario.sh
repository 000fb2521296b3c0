# What says no or nothing before and behind the swap: canaries, loaders, probes, workers by signal, by line and by http,
# bundles that go together, and an agent that dies in the middle of a load.
cat >judge <<'END'
#!/bin/sh
# judge NAME FILE: reads its verdict from the policy itself
case $(cat "$2") in
*$1-no*) echo "$1 says no"; exit 1 ;;
*$1-later*) echo "$1 says not now"; exit 75 ;;
*$1-dies*) kill -9 $$ ;;
esac
echo "$1 says yes"
END
chmod +x judge
host_config "bundles: [{ name: access }, { name: dns-edge }]
together: [[access, dns-edge]]
workers:
  - name: app
    uses: [access]
    canary: { run: [$W/judge, canary, '{candidate}/access/policy.yaml'] }
    load: { run: [$W/judge, load, '{current}/access/policy.yaml'] }
    reset: { run: [$W/judge, reset, '{current}/access/policy.yaml'] }
    probe: { run: [$W/judge, probe, '{current}/access/policy.yaml'] }
  - name: daemon
    uses: [dns-edge]
    reset: { signal: HUP, pidFile: $W/daemon.pid, min: 1 }"
host() { writ "$@" --config agent.yaml; }
policy() { # policy TEXT
  printf 'text: %s\n' "$1" >access/policy.yaml
  publish "$1" access access
}
host pull -v
host status
sleep 1000 &
echo $! >daemon.pid
printf '; more\n' >>dns-edge/block.rpz
publish second dns-edge dns-edge
(exec bash -c 'trap : HUP; while :; do sleep 0.1; done') &
echo $! >daemon.pid
sleep 0.2
host pull -v
for text in canary-no canary-later canary-dies load-no load-later load-dies reset-no reset-later probe-no probe-later; do
  policy "$text"
  host pull
  case $text in *-no) host status ;; esac
  host resume
done
policy good
host pull
host status
host health
host doctor
host history -n 3
look state
