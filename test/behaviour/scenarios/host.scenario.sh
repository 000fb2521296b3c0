# A host without an agent: each command does its work alone. Updates, attacks, a check that says no, going back, pausing,
# and damage on the disk that is found and mended.
cat >check <<'END'
#!/bin/sh
if grep -q broken "$1/policy.yaml"; then echo "policy.yaml: broken on line 1"; exit 1; fi
if grep -q later "$1/policy.yaml"; then echo "not now"; exit 75; fi
echo "looks well"
END
chmod +x check
host_config "bundles:
  - name: access
    checks: [{ name: policy is not broken, run: [$W/check, '{bundle}'] }]
  - name: dns-edge
keep: { generations: 3, grace: 1m }
refusals: { retry: 1h }"
host() { writ "$@" --config agent.yaml; }
policy() { # policy REVISION TEXT: the next release of access
  printf '%s\n' "$2" >access/policy.yaml
  publish "$1" access access
}
all() { # everything that can be asked
  for question in status health history doctor verify; do host "$question"; done
}
all
host diff
host rollback
host pull -v
host pull
all
look state
look run
policy second 'users: { ann: [reader] }'
host diff --server
host pull -q
host diff
host diff 1 2
host diff 1 2 --stat
host diff 2 1
host diff 7 8
host pull --exit-unchanged 42
host pull --force
policy third 'users: { ann: [reader, editor] }'
archive=$(ls -t repo/targets/access/*.tar.br | head -1)
cp "$archive" whole
printf x | dd of="$archive" bs=1 seek=40 conv=notrunc 2>/dev/null
host pull
host status
truncate -s 100 "$archive"
host pull
cat whole >"$archive"
cp repo/metadata/timestamp.json whole.json
sed -i 's/"version":\([0-9]*\)/"version":9\1/' repo/metadata/timestamp.json
host pull
host status
host health
printf '{' >repo/metadata/timestamp.json
host pull
rm repo/metadata/timestamp.json
host pull
cp whole.json repo/metadata/timestamp.json
host pull
policy refused 'broken'
host pull
host pull
all
policy unsure 'later'
host pull
policy fourth 'users: { ann: [editor] }'
host pull
host rollback --reason 'ann must not write'
host pull
host status
host resume
host resume
host rollback 1
host rollback 99
host rollback
host pull --force
all
host pause --reason 'change freeze' --for 2h
policy fifth 'users: { ann: [] }'
host pull
host status
host health
later 9000
host pull
host pause --reason 'until further notice'
host resume
tree=$(readlink -f state/policy/current/access)
chmod u+w "$tree/policy.yaml"
printf 'users: { eve: [editor] }\n' >"$tree/policy.yaml"
printf 'x' >"$tree/extra"
all
host verify --repair
host verify
host history -n 1
tree=$(readlink -f state/policy/current/access)
rm -rf "$tree"
rm -rf state/archives
host verify
host verify --repair
mv repo away
tree=$(readlink -f state/policy/current/access)
rm -rf "$tree" state/archives
host verify --repair
host pull
host rollback
all
mv away repo
host pull
later 900000
host pull
all
policy sixth 'users: { zoe: [reader] }'
host pull
host history -n 2
host history --cycle c-00000000
look state
look run
