// What `writ help TOPIC` says: what no single command can. Texts alone; the last word on each is the page that it names. A contract
// test holds the exit codes to those of errors.

const exitCodes = `Exit codes, the same of every command unless its own help says otherwise:

  0    done, unchanged or activated
  1    failed: try again
  2    usage or configuration: correct what you typed or wrote
  3    rejected: the release was refused, the old policy stays
  4    degraded: active, but a worker was not notified or is missing
  5    rolled back: a worker said no, the previous policy is back
  6    blocked: a person is needed
  7    busy: somebody else is at work
  8    deferred: later, by itself
  130  ended by Ctrl-C; 143: by SIGTERM

Questions answer by their exit code: health, doctor and repo status 0 ok, 1 warning,
2 critical (health: 3 unknown); diff 0 the same, 1 different, 2 error;
pull --exit-unchanged 77 tells "nothing new" from "activated".
With --json each failure has its code; docs/errors.md says what to do about it.
`;

const environment = `Environment. A flag beats the environment, the environment beats the default.

  WRIT_CONFIG      configuration of this host, in place of /etc/writ/agent.yaml
  WRIT_<FLAG>      every other flag that has a value, as its help shows it
  WRIT_PASSPHRASE  passphrase of the keys; others can see it: prefer
                   --passphrase-file or --passphrase-command
  NO_COLOR         no colours; FORCE_COLOR: colours also without a terminal

Set by Writ for the commands that it runs:

  WRIT_BUNDLE, WRIT_GENERATION, WRIT_POLICY, WRIT_WORKER   checks, loaders, probes
                   (docs/sandbox.md, docs/configuration.md)
  WRIT_STALE_*     onStale and onFresh (docs/configuration.md)
  WRIT_SIGN_FILE   a signer: a file with the bytes that it also gets on stdin
`;

const bundles = `Bundles. A bundle is a directory of policy files with a name.

  writ publish DIR --bundle NAME   signs DIR as the next serial of NAME on a channel
                                   (stable unless --channel says another)
  --dry-run                        lists every file that would be signed
  .writignore, --exclude GLOB      leave files out, by patterns as in a .gitignore
                                   without "!"; .git, .env and their kin are refused
                                   until they are left out, or named by --include
  --stamp FILE                     fills @writ.serial@ and @writ.source@ into FILE, so
                                   that a probe can ask for it
  writ promote, writ withdraw      give a release to another channel, take it back

Only regular files: no links, no special files. An empty directory is left out. A serial
only grows, also over a withdrawal. Who publishes the same tree again publishes nothing.
More: docs/operations.md
`;

const keys = `Keys. Every role has keys of its own, and a host trusts what the root says.

  root        3 keys, 2 needed; with different people, offline. Signs who signs the rest
  targets     signs releases: the publisher's. Teams have roles of their own (delegate)
  snapshot    \\ the server's: they say what is current, and expire
  timestamp   / within days

  writ init                        makes all of them with a repository
  writ key new, writ delegate      a key for a person, a role for a team
  writ root rotate, writ sign,     change keys of the root: a proposal goes by mail, its
  writ root commit                 code by voice, and hosts follow at their next poll
  --signer 'ROLE=CMD'              signs with an HSM, KMS or YubiKey: CMD gets the bytes
                                   on stdin and in $WRIT_SIGN_FILE, and answers with
                                   the signature: raw, in hex or in base64

Runbooks, from the first day to a stolen key: docs/operations.md
`;

const topics: ReadonlyMap<string, string> = new Map(
  Object.entries({ 'exit-codes': exitCodes, environment, bundles, keys }),
);

/** @returns the text of a topic, if it is one */
export function topicText(name: string): string | undefined {
  return topics.get(name);
}

export const topicNames: readonly string[] = [...topics.keys()];

/** What stands below the list of commands. */
export const rootHelp = `
Examples, in the order of a day:
  $ writ init --repository repo --keys keys
  $ writ publish policy --repository repo --keys keys --bundle dns-edge
  $ writ serve --repository repo
  $ writ pull
  $ writ status
  $ writ rollback

writ COMMAND --help shows examples, flags and exit codes of one command.
writ help TOPIC: ${topicNames.join(', ')}
Pages: docs/operations.md, docs/configuration.md, docs/errors.md
`;
