// `writ check`: checks whether a host with this configuration accepts a directory. Packs it like `writ publish`, and runs
// the checks with the code and sandbox of a pull. Requires no key, server or agent, and changes nothing.
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PackedSource } from '../../../agent/checks/check-source.js';
import { requireOwnConfig } from '../../../agent/config/config-file.js';
import { loadConfig } from '../../../agent/config/load-config.js';
import type { AgentConfig, BundleConfig } from '../../../core/config/config.js';
import { WritError } from '../../../core/errors.js';
import { defaultArchiveLimits } from '../../../core/limits.js';
import { createDurableFs } from '../../../platform/disk/durable-fs.js';
import { silentLog } from '../../../platform/telemetry/silent-log.js';
import { packBundle } from '../../../publisher/archive/build-bundle.js';
import { readSourceTree, type SourceTree } from '../../../publisher/archive/source-tree.js';
import type { CommandContext, CommandDefinition } from '../../console/command.js';
import { nameFlag, repeatedText } from '../../console/flag-values.js';
import { type FlagValues, optional } from '../../console/flags.js';
import { configFlag } from '../../host/agent-requests.js';
import { agentModules } from '../../host/lazy-agent-modules.js';
import { type Checked, checkAnswer } from '../../show/show-check.js';

const flags = {
  ...configFlag,
  bundle: optional('--bundle <name>', 'the bundle that it is; left out where there is only one', nameFlag),
  with: optional(
    '--with <name=dir>',
    'another bundle that the host has beside it; may be repeated',
    repeatedText,
  ),
  exclude: optional(
    '--exclude <glob>',
    'leave these files or directories out, as publish and .writignore do; may be repeated',
    repeatedText,
  ),
  include: optional(
    '--include <glob>',
    'take these though their names are those of secrets, as publish; may be repeated',
    repeatedText,
  ),
};
type CheckFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<CheckFlags> = {
  examples: [
    'writ check policy --config agent.yaml',
    "writ check . --config deploy/agent.yaml --bundle dns-edge --exclude '*.bak' --json",
    'writ check acl --config agent.yaml --bundle acl --with limits=../limits',
  ],
  exitCodes: [
    '0  accepted: a host with this configuration would take it',
    '1  a check gave no verdict, or cannot be confined here',
    '2  usage or configuration, or the directory cannot be published',
    '3  rejected by a check or a limit',
    '8  a check says "not now"',
    '130  interrupted',
  ],
  onSignal: 'drain',
  args: [['<dir>', 'directory with the policy, as for writ publish']],
  flags,
  run: async ([source = ''], flags, context) => {
    const { config } = loadConfig(context.at(flags.config));
    requireOwnConfig(context.at(flags.config));
    const wanted = wantedSources(source, flags, config);
    const directory = fs.mkdtempSync(join(tmpdir(), 'writ-check-'));
    try {
      const checked = await checkAll(wanted, { config, directory, flags, context });
      return checkAnswer(checked, { source, config: flags.config });
    } finally {
      fs.rmSync(directory, { recursive: true, force: true });
    }
  },
};

interface Wanted {
  readonly bundle: BundleConfig;
  readonly source: string;
}

/** @returns the sources, with the bundle to check first */
function wantedSources(source: string, flags: CheckFlags, { bundles }: AgentConfig): Wanted[] {
  const all = [{ bundle: bundleNamed(flags.bundle, bundles), source }];
  for (const text of flags.with ?? []) {
    const [, name = '', directory = ''] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
    if (directory === '') {
      throw new WritError('USAGE', `--with ${text} names no bundle and directory`, {
        facts: { expected: 'name=dir', actual: text },
      });
    }
    const bundle = bundleNamed(name, bundles);
    if (all.some((one) => one.bundle === bundle)) throw new WritError('USAGE', `${name} is given twice`);
    all.push({ bundle, source: directory });
  }
  return all;
}

function bundleNamed(name: string | undefined, bundles: readonly BundleConfig[]): BundleConfig {
  const names = bundles.map((one) => one.name).join(', ');
  const found = name === undefined ? bundles : bundles.filter((one) => one.name === name);
  const [bundle] = found;
  if (bundle !== undefined && found.length === 1) return bundle;
  if (name === undefined) {
    const message = `the configuration has ${bundles.length} bundles: --bundle says which one the directory is`;
    throw new WritError('USAGE', message, {
      facts: { expected: names },
      hint: `Give --bundle with one of ${names}.`,
    });
  }
  throw new WritError('USAGE', `the configuration has no bundle ${name}`, {
    facts: { expected: names, actual: name },
    hint: `Its bundles are ${names}.`,
  });
}

interface Checking {
  readonly config: AgentConfig;
  readonly directory: string;
  readonly flags: CheckFlags;
  readonly context: CommandContext;
}

async function checkAll(wanted: readonly Wanted[], checking: Checking): Promise<Checked> {
  const { config, directory, context } = checking;
  const { reporter, clock, signal } = context;
  const sources: PackedSource[] = [];
  const trees: SourceTree[] = [];
  for (const one of wanted) {
    const { tree, packed } = await pack(one, checking);
    trees.push(tree);
    sources.push(packed);
  }
  const beside = config.bundles.filter((one) => !wanted.some(({ bundle }) => bundle === one));
  for (const { name } of beside) {
    reporter.warn(`a pull would have ${name} beside it: --with ${name}=DIR puts it there`);
  }
  reporter.begin('check');
  const { checkSource } = await agentModules.checkSource();
  const verdict = await checkSource({ config, sources, directory, clock, log: silentLog(), signal });
  reporter.drop('check');
  const [tree] = trees;
  const [packed] = sources;
  if (tree === undefined || packed === undefined) throw new WritError('INTERNAL', 'nothing was packed');
  return { ...verdict, bundle: packed.bundle, tree, archiveBytes: packed.archiveBytes };
}

async function pack({ bundle, source }: Wanted, { directory, flags, context }: Checking) {
  const { reporter, signal, at } = context;
  reporter.begin('read', source);
  const tree = await readSourceTree(at(source), defaultArchiveLimits, { ...flags, report: reporter, signal });
  const archivePath = join(directory, `${bundle.name}.tar.br`);
  const packed = await packBundle(tree, {
    ...{ archivePath, limits: defaultArchiveLimits, durableFs: createDurableFs(), report: reporter, signal },
  });
  reporter.drop('read');
  const manifest = { digest: tree.manifestDigest, length: tree.manifestBytes.length };
  return { tree, packed: { bundle, ...packed, manifest } };
}
