// `writ init`: creates a repository and its keys, and prints the next steps for the keys.
import { basename } from 'node:path';
import { timeLeft } from '../../../core/text/iso-time.js';
import { createDurableFs } from '../../../platform/disk/durable-fs.js';
import { defaultValidityPeriods } from '../../../publisher/repository/metadata-content.js';
import {
  type InitOptions,
  type InitResult,
  initRepository,
  planInit,
} from '../../../publisher/root/init-repository.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { durationFlag, numberFlag, repeatedText } from '../../console/flag-values.js';
import { type FlagValues, optional, preset, required, toggle } from '../../console/flags.js';
import {
  generatedLines,
  type NewPassphrase,
  newPassphrase,
  passphraseFlags,
} from '../../repository/passphrase.js';
import { fingerprint, isoDay, shellQuote } from '../../show/show-repository.js';
import { table } from '../../show/show-text.js';

const flags = {
  repository: required('--repository <dir>', 'directory for the new repository'),
  keys: required('--keys <dir>', 'directory for the new keys'),
  passphrase: toggle('--no-passphrase', 'leave the key files unencrypted'),
  rootKeys: preset('--root-keys <n>', 'number of root keys to create', 3, numberFlag(1, 20)),
  rootThreshold: preset('--root-threshold <k>', 'how many of them must sign a root', 2, numberFlag(1, 20)),
  name: optional(
    '--name <name>',
    'holder of the next root key, for example anna; may be repeated',
    repeatedText,
  ),
  yes: toggle('-y, --yes', 'accept that one lost root key makes the repository unusable'),
  ...passphraseFlags,
  rootLife: life('root'),
  targetsLife: life('targets'),
  snapshotLife: life('snapshot'),
  timestampLife: life('timestamp'),
};
type InitFlags = FlagValues<typeof flags>;

function life(role: keyof typeof defaultValidityPeriods) {
  const text = `time from signing ${role} to its expiry`;
  const validityMs = defaultValidityPeriods[role];
  return preset(
    `--${role}-life <duration>`,
    text,
    validityMs,
    durationFlag,
    timeLeft(validityMs).replace(' ', ''),
  );
}

export const command: CommandDefinition<InitFlags> = {
  examples: [
    'writ init --repository repo --keys keys',
    'writ init --repository repo --keys keys --name anna --name ben --name carol',
    'writ init --repository repo --keys keys --root-keys 5 --root-threshold 3 --timestamp-life 1d',
  ],
  exitCodes: ['0  made', '1  a disk or signature failure', '2  usage, or the files exist'],
  quiet: 'first-line',
  flags,
  acts: () => true,
  run: async (_args, flags, context) => {
    const options = optionsOf(flags, context);
    planInit(options);
    const chosen = flags.passphrase ? await newPassphrase(flags, context) : undefined;
    const result = initRepository({ ...options, passphrase: chosen?.passphrase });
    return answer(result, flags, context, chosen);
  },
};

function optionsOf(flags: InitFlags, context: CommandContext): InitOptions {
  return {
    repository: context.at(flags.repository),
    keysDirectory: context.at(flags.keys),
    rootKeys: flags.rootKeys,
    rootThreshold: flags.rootThreshold,
    rootNames: flags.name ?? [],
    spareRootKey: flags.yes ? 'waived' : 'required',
    validity: {
      root: flags.rootLife,
      targets: flags.targetsLife,
      snapshot: flags.snapshotLife,
      timestamp: flags.timestampLife,
    },
    clock: context.clock,
    durableFs: createDurableFs(),
  };
}

function answer(
  result: InitResult,
  flags: InitFlags,
  { clock }: CommandContext,
  chosen: NewPassphrase | undefined,
): Answer {
  const nowMs = clock.nowMs();
  const rows = result.roles.map((role) => [
    role.role,
    String(role.keys),
    String(role.threshold),
    isoDay(role.expiresMs),
    timeLeft(role.expiresMs - nowMs),
    `${flags.keys}/${keyNames(role)}`,
    role.role === 'root' || role.role === 'targets' ? 'keep offline' : 'server',
  ]);
  return {
    outcome: 'created',
    details: {
      repository: flags.repository,
      root: result.rootPath,
      rootDigest: `sha256:${result.rootDigestHex}`,
      encrypted: flags.passphrase,
      roles: result.roles.map(({ role, threshold, expiresMs, keyFiles, signers }) => {
        return { role, threshold, expires: new Date(expiresMs).toISOString(), keyFiles, signers };
      }),
    },
    lines: [
      `CREATED repository ${flags.repository} (TUF 1.0.34, consistent snapshots)`,
      ...table(['role', 'keys', 'need', 'expires', '', 'secret', ''], rows),
      `Root fingerprint  ${fingerprint(result.rootDigestHex)}      compare it by voice with a colleague`,
      ...secretLines(chosen),
      warning(flags),
      ...holderLines(result, flags),
      `  2. copy ${result.rootPath} to each host as /etc/writ/root.json`,
      '  3. publish:',
    ],
    kept: generatedLines('Passphrase of all keys', chosen),
    next: `writ publish SOURCE --repository ${shellQuote(flags.repository)} --keys ${shellQuote(flags.keys)} --bundle NAME`,
  };
}

function keyNames({ keyFiles }: InitResult['roles'][number]): string {
  const first = basename(keyFiles[0] ?? '');
  return keyFiles.length === 1 ? first : first.replace('1.key', `1..${keyFiles.length}.key`);
}

/** The person for each root key. Lists keys without a person too, because they would stay unnoticed beside the others. */
function holderLines({ roles }: InitResult, { keys, name = [] }: InitFlags): string[] {
  const copy = `with a copy of ${keys}/root.json`;
  const files = (roles[0]?.keyFiles ?? []).map((path) => basename(path));
  if (name.length === 0) return [`  1. give each root key to a different person or device, ${copy}`];
  const taken = name.map((holder, index) => `${files[index]} to ${holder}`);
  const left = files.slice(name.length);
  const spare = `     ${left.join(', ')}: nobody is named; seal it, and keep it where none of the others is`;
  return [`  1. give ${taken.join(', ')}, each ${copy}`, ...(left.length === 0 ? [] : [spare])];
}

function secretLines(chosen: NewPassphrase | undefined): string[] {
  if (chosen === undefined) return ['The key files are not encrypted: whoever reads them can sign.'];
  return generatedLines('Passphrase of all keys', chosen);
}

function warning({ rootKeys, rootThreshold }: InitFlags): string {
  const lost = rootKeys - rootThreshold + 1;
  const subject = lost === 1 ? 'one root key' : `${lost} root keys`;
  return `With ${subject} lost, every host must be set up again.`;
}
