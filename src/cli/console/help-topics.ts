// The texts of `writ help TOPIC`, for topics that concern several commands. The page that a text names is authoritative. A
// contract test compares the exit codes with those of errors.

const exitCodes = `Exit codes of every command, unless its own help lists others:

  0    done, unchanged or activated
  1    failed: try again
  2    usage or configuration: correct what you typed or wrote
  3    rejected: the release was refused, the old policy stays
  4    degraded: active, but a worker was not notified or is missing
  5    rolled back: a worker refused, the previous policy is active again
  6    blocked: a person is needed
  7    busy: another process is at work
  8    deferred: activated later, automatically
  130  ended by Ctrl-C; 143: by SIGTERM

Questions answer by their exit code: health, doctor and repo status 0 ok, 1 warning,
2 critical (health: 3 unknown); diff 0 the same, 1 different, 2 error;
pull --exit-unchanged 77 distinguishes "nothing new" from "activated".
A command that only answers ends with 1 if its answer could not be written (disk full,
reader gone). One that changes something ends with the code of what it did.
With --json each failure has its code; writ help CODE explains what to do.
`;

const environment = `Environment. A flag beats the environment, the environment beats the default.

  WRIT_<COMMAND>_<FLAG>   each flag that has a value, as the help of its command shows it:
                          WRIT_PUBLISH_REPOSITORY for writ publish --repository,
                          WRIT_REPO_STATUS_FAIL_WITHIN for writ repo status --fail-within.
                          No other command reads it. An empty one counts as not set.

One name for several commands:

  WRIT_CONFIG             configuration of this host, in place of /etc/writ/agent.yaml
  WRIT_FLEET_URL, WRIT_FLEET_TOKEN_FILE, WRIT_FLEET_CA, WRIT_FLEET_STORE,
  WRIT_FLEET_STORE_FILE   server of the fleet commands; the last two: fleet serve too
  WRIT_COLOR              colours: auto, always or never
  WRIT_PASSPHRASE         passphrase of the keys; WRIT_NEW_PASSPHRASE: the new one of
                          key passphrase. Others can see it: prefer --passphrase-file
                          or --passphrase-command
  WRIT_DOCS_URL           where your company publishes these pages, as
                          https://docs.example.com/writ: an error names its page there.
                          Else it names that of the installed package, if there is one
  HTTPS_PROXY, HTTP_PROXY, NO_PROXY
                          proxy for https and http URLs, and exceptions, also in small
                          letters. The key proxy of the configuration replaces them
                          (docs/configuration.md)
  NO_COLOR                no colours; FORCE_COLOR: colours also without a terminal

WRIT_<FLAG> without a command, as WRIT_TO, steers nothing: a command that has this flag
ends with 2 then, and names the variable that it reads.

Set by Writ for the commands that it runs:

  WRIT_BUNDLE_DIR, WRIT_GENERATION_DIR, WRIT_SCRATCH_DIR   checks, loaders, probes
                          (docs/sandbox.md, docs/configuration.md)
  WRIT_GENERATION, WRIT_WORKER   notify commands (docs/drivers.md)
  WRIT_STALE_*            onStale and onFresh (docs/configuration.md)
  WRIT_SIGN_FILE, WRIT_SIGN_ROLE, WRIT_SIGN_KEYIDS   a signer: a file with the bytes that
                          it also gets on stdin, the role, its keys. For this reason
                          writ sign --role has no variable
`;

const bundles = `Bundles. A bundle is a directory of policy files with a name.

  writ publish DIR --bundle NAME   signs DIR as the next serial of NAME on a channel
                                   (stable, or that of --channel)
  --dry-run                        lists every file that would be signed
  .writignore, --exclude GLOB      leave files out, by patterns as in a .gitignore
                                   without "!"; .git, .env, private keys, tokens and
                                   similar secrets are refused until they are excluded
                                   or named by --include
  --stamp FILE                     fills @writ.serial@ and @writ.source@ into FILE, so
                                   that a probe can ask for it
  writ promote, writ withdraw      point a channel at a release, withdraw one

Only regular files: no links, no special files. Modes become 0644 or 0755; an empty
directory is left out. publish warns of both. A serial
only grows, also over a withdrawal. A tree without changes is not published again.
More: docs/operations.md
`;

const keys = `Keys. Every role has keys of its own, and a host trusts the keys in the root.

  root        3 keys, 2 needed; with different people, offline. Signs who signs the rest
  targets     signs releases: the publisher's. Teams have roles of their own (delegate)
  snapshot    \\ the server's: they list what is current, and expire
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

const upload = `Upload: the publisher signs on one machine, a web server on another serves the files.

  #!/bin/sh -e
  exec 9> upload.lock && flock 9
  cp -p repo/metadata/timestamp.json timestamp.json
  rsync -rt --exclude=timestamp.json repo/targets repo/metadata server:/srv/www/policy/
  rsync -t timestamp.json server:/srv/www/policy/metadata/

This is the script "upload". Each publish is then one line:

  writ publish policy --repository repo --keys keys --bundle dns-edge && ./upload

timestamp.json goes last, because hosts follow the files that it names. If the upload
fails, hosts keep the previous release: type the same line again. publish then finds
nothing new and ends with 0, and the upload goes on. The timestamp expires (after 7 days
unless init set another time), so a timer runs each day:

  writ refresh --repository repo --keys keys && ./upload

A server that re-signs (writ serve --keys) owns its timestamp.json: docs/operations.md has
the lines for it. Object stores, caches, nginx: docs/server.md
`;

const topics: ReadonlyMap<string, string> = new Map(
  Object.entries({ 'exit-codes': exitCodes, environment, bundles, keys, upload }),
);

/** @returns the text of a topic; undefined for another name */
export function topicText(name: string): string | undefined {
  return topics.get(name);
}

export const topicNames: readonly string[] = [...topics.keys()];

/** The text below the list of commands. */
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
writ help CODE, as writ help DOWNLOAD_DIGEST: what an error means, and what to do
Pages: docs/operations.md, docs/configuration.md, docs/errors.md (of the Debian package: in /usr/share/doc/writ)
`;
