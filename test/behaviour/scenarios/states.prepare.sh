# State directories as the first checkout leaves them, one a recipe, each below hosts/NAME with its configuration.
host() { writ "$@" --config "hosts/$name/agent.yaml"; }
recipe() { # recipe NAME [LINES]: a host that has followed the repository once
  name=$1
  mkdir -p "hosts/$name"
  host_config "bundles: [{ name: access, checks: [{ name: no, run: [$W/check, '{bundle}'] }] }]
keep: { grace: 1m }
${2:-}"
  sed -e "s,$W/state,$W/hosts/$name/state," -e "s,$W/run,$W/hosts/$name/run," -e "s,$W/events,$W/hosts/$name/events," \
    agent.yaml >"hosts/$name/agent.yaml"
  if [ "$name" != empty ]; then host pull; fi
}
printf '#!/bin/sh\n! grep -q broken "$1/policy.yaml"\n' >check
printf '#!/bin/sh\nif [ -e %s/slow ]; then sleep 60; fi\n' "$W" >load
chmod +x check load
loads="workers: [{ name: app, uses: [access], load: { run: [$W/load] } }]"
for name in healthy rolled-back refused paused damaged gone; do recipe "$name"; done
recipe interrupted "$loads"
recipe behind
recipe empty
printf 'users: {}\n' >access/policy.yaml
publish second access access
for name in healthy rolled-back refused paused damaged gone; do host pull; done
name=rolled-back
host rollback --reason 'by hand'
name=paused
host pause --reason freeze
name=damaged
chmod u+w "$(readlink -f hosts/damaged/state/policy/current/access)/policy.yaml"
echo 'more: yes' >>"$(readlink -f hosts/damaged/state/policy/current/access)/policy.yaml"
name=gone
rm -rf "$(readlink -f hosts/gone/state/policy/current/access)" hosts/gone/state/archives
touch slow
name=interrupted
start pull pull --config hosts/interrupted/agent.yaml
await test -L hosts/interrupted/state/policy/generations/2/access
for _ in $(seq 200); do
  if [ "$(readlink hosts/interrupted/state/policy/current)" = generations/2 ]; then break; fi
  sleep 0.05
done
stop pull KILL
rm slow
printf 'broken: yes\n' >access/policy.yaml
publish broken access access
name=refused
host pull
cp -a hosts/healthy hosts/no-ledger && rm hosts/no-ledger/state/ledger.json
cp -a hosts/healthy hosts/bad-ledger && printf '{' >hosts/bad-ledger/state/ledger.json
cp -a hosts/healthy hosts/bad-history && printf 'nonsense\n' >>hosts/bad-history/state/history.jsonl
cp -a hosts/healthy hosts/no-trust && rm -r hosts/no-trust/state/trust
cp -a hosts/healthy hosts/bad-trust && printf '{' >hosts/bad-trust/state/trust/timestamp.json
for name in no-ledger bad-ledger bad-history no-trust bad-trust; do
  sed -i "s,hosts/healthy,hosts/$name,g" "hosts/$name/agent.yaml"
done
