# Command lines that are not understood, and hosts that are not there.
writ
writ --nonsense
writ nonsense
writ statsu
writ repo
writ repo nonsense
writ root
writ key
writ config
for command in agent pull status health doctor history diff rollback pause resume verify reload 'config show'; do
  flag=--nonsense
  if [ "$FORM" = json ]; then flag='--config nowhere.yaml'; fi
  # shellcheck disable=SC2086
  writ $command $flag
done
for command in init publish withdraw promote delegate refresh inspect sign serve 'repo status' 'repo check' 'repo gc' \
  'repo export' 'key new' 'key list' 'key show' 'key passphrase' 'root rotate' 'root add-key' 'root remove-key' \
  'root threshold' 'root commit'; do
  # shellcheck disable=SC2086
  if [ "$FORM" = human ]; then writ $command --no-input; fi
done
host_config "bundles: [{ name: access }]
pol: 3
poll: { every: 5x }"
writ config show --config agent.yaml
host_config "bundles: [{ name: ACCESS }, { name: access, chanel: x }]"
writ config show --config agent.yaml
writ pull --config agent.yaml
writ agent --config agent.yaml
host_config "bundles: [{ name: access }]"
writ config show --config agent.yaml
writ config show --config agent.yaml -q
WRIT_CONFIG=$W/agent.yaml writ config show
writ pull --config agent.yaml --exit-unchanged x
writ pull --config agent.yaml --wait never
writ pull --config agent.yaml extra
writ history --config agent.yaml -n 0
writ history --config agent.yaml --cycle nonsense
writ rollback --config agent.yaml x
writ pause --config agent.yaml
writ pause --config agent.yaml --for 2h --until 2099-01-01T00:00Z --reason both
writ pause --config agent.yaml --until yesterday --reason word
writ status --config agent.yaml --color never
writ status --config agent.yaml --color rainbow
writ status --config agent.yaml -q
