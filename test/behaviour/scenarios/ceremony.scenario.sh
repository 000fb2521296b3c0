# Root ceremonies by mail, delegations to a team, and what of both is refused.
flags=(--repository repo --keys keys)
code() { grep -o -E '"code":"[^"]+"' "$1" | head -1 | cut -d'"' -f4; }
# The code is the same for a person and a program; only the program can read it from the answer.
propose() {
  local form=$FORM
  writ root "$@" --repository repo --keys keys -o root.proposal
  cp root.proposal asked.proposal 2>/dev/null
  said=$(code "$OUT")
  if [ -z "$said" ]; then
    said=$(BEHAVIOUR_NOW_MS=$((START_MS + second * 1000)) BEHAVIOUR_SEED=code "$NODE" --import \
      "$TOOLS/pinned-process.js" "$PROGRAM" sign root.proposal --key keys/anna.key --dry-run --json | grep -o -E '"code":"[^"]+"' | cut -d'"' -f4)
  fi
}
propose add-key people/dora.pub
writ sign root.proposal --key keys/anna.key --dry-run
writ sign root.proposal --key keys/anna.key
writ sign root.proposal --key keys/anna.key --confirm 'wrong code'
writ sign root.proposal --key keys/anna.key --confirm "$said"
writ sign root.proposal --key keys/anna.key --confirm "$said"
writ root commit root.proposal "${flags[@]}" --confirm "$said"
writ sign asked.proposal --key keys/ben.key --confirm "$said" -o from-ben.proposal
writ sign asked.proposal --key people/team.key --root keys/root.json --confirm "$said" -o from-team.proposal
writ sign from-ben.proposal --key keys/carol.key --merge root.proposal --confirm "$said" -o all.proposal
look .
writ root commit root.proposal from-ben.proposal "${flags[@]}" --confirm 'wrong code'
writ root commit root.proposal from-ben.proposal "${flags[@]}" --dry-run --confirm "$said"
writ root commit root.proposal from-ben.proposal "${flags[@]}" --confirm "$said"
writ root commit root.proposal from-ben.proposal "${flags[@]}" --confirm "$said"
writ repo status "${flags[@]}"
complete() { # complete KEYS: the last proposal, signed by these, made the root
  for key in "$@"; do writ sign root.proposal --key "$key" --root keys/root.json --confirm "$said"; done
  writ root commit root.proposal "${flags[@]}" --confirm "$said" "${commit[@]}"
}
commit=()
propose threshold 3
complete keys/anna.key keys/ben.key people/dora.key
propose threshold 9
propose remove-key ben
complete keys/anna.key keys/carol.key people/dora.key
propose remove-key nobody
propose rotate --replace targets=people/targets-2.pub
commit=(--leave-unsigned)
complete keys/anna.key keys/carol.key people/dora.key
writ repo status "${flags[@]}"
cp people/targets-2.key people/targets-2.pub keys/
writ sign --role targets "${flags[@]}"
writ refresh "${flags[@]}"
commit=()
propose rotate --replace timestamp=people/timestamp-2.pub --timestamp-life 3d --root-life 200d
cp people/timestamp-2.key people/timestamp-2.pub keys/
complete keys/anna.key keys/carol.key people/dora.key
propose rotate
printf '{"not": "a proposal"}\n' >root.proposal
complete keys/anna.key
writ repo check "${flags[@]}"
host_config "bundles: [{ name: access }]"
writ pull --config agent.yaml
writ status --config agent.yaml
writ delegate team "${flags[@]}" --paths 'dns-*/*' --key people/team.pub --dry-run
writ delegate team "${flags[@]}" --paths 'dns-*/*' --key people/team.pub
writ delegate team "${flags[@]}" --paths 'dns-*/*' --key people/team.pub --hand-over --yes
writ delegate 'no team' "${flags[@]}" --paths 'dns-*/*' --key people/team.pub
writ delegate other "${flags[@]}" --paths '**' --key people/team.pub
writ delegate other "${flags[@]}" --key people/team.pub
mkdir team && cp people/team.key people/team.pub keys/root.json team/
writ sign --role team --repository repo --keys team
writ refresh "${flags[@]}"
printf '; more\n' >>dns-edge/block.rpz
writ publish dns-edge --repository repo --keys team --bundle dns-edge --revision by-team
writ publish access --repository repo --keys team --bundle access --revision by-team
writ refresh "${flags[@]}"
writ repo status "${flags[@]}"
writ delegate team "${flags[@]}" --life 40d --yes
writ delegate team "${flags[@]}" --remove --yes
writ repo check "${flags[@]}"
writ inspect repo
look repo
