// `writ publish`: signs a directory as the next release of a bundle, and prints the change and what hosts see now.

import { given } from '../../../core/given.js';
import { defaultArchiveLimits } from '../../../core/limits.js';
import type { ManifestDifference } from '../../../core/release/manifest.js';
import type { ReleaseInfo } from '../../../core/release/release.js';
import { canonicalRequires, unknownFeatures } from '../../../core/release/requires.js';
import { sizeText } from '../../../core/size-text.js';
import { writVersion } from '../../../core/version.js';
import type { SourceTree } from '../../../publisher/archive/source-tree.js';
import {
  type PreviewResult,
  type PublishResult,
  previewPublish,
  publishBundle,
} from '../../../publisher/release/publish.js';
import type { Answer, CommandContext, CommandDefinition, Reporter } from '../../console/command.js';
import { nameFlag, newSerialFlag, repeatedText, serialFlag } from '../../console/flag-values.js';
import { type FlagValues, optional, preset, required, toggle } from '../../console/flags.js';
import {
  changeBoundExitCode,
  changeBoundFlags,
  changeBoundsOf,
  changeDetails,
  changeLines,
  type ShownChange,
  warnOfUnknownChange,
} from '../../repository/change-bound-flags.js';
import {
  changeAnswer,
  changeFlags,
  changeOptions,
  deltasFlag,
  nothingNew,
  previewOf,
  reportSigned,
} from '../../repository/change-flags.js';
import { firstOf, sourceDetails, warnOfSource } from '../../repository/source-warnings.js';
import { deltaDetails, deltasText, shortDigest } from '../../show/show-repository.js';
import { counted, table } from '../../show/show-text.js';

const flags = {
  ...changeFlags,
  bundle: required('--bundle <name>', 'name of the policy tree', nameFlag),
  channel: preset('--channel <name>', 'who gets it', 'stable', nameFlag),
  revision: preset('--revision <text>', 'note for people, for example a git commit', ''),
  afterSerial: optional(
    '--after-serial <n>',
    'continue after this serial of a lost repository',
    newSerialFlag,
  ),
  stamp: optional(
    '--stamp <file>',
    'fill @writ.serial@ and @writ.source@ into this file of SOURCE; may be repeated',
    repeatedText,
  ),
  requires: optional(
    '--requires <name>',
    'only hosts whose Writ knows this feature accept it; may be repeated',
    repeatedText,
  ),
  fixes: optional(
    '--fixes <n>',
    'serial that it corrects: hosts that have this serial, or on which it failed, do not wait',
    serialFlag,
  ),
  exclude: optional(
    '--exclude <glob>',
    'leave these files or directories of SOURCE out, as its .writignore does; may be repeated',
    repeatedText,
  ),
  include: optional(
    '--include <glob>',
    'publish these files although their names or content suggest secrets, for example .env; may be repeated',
    repeatedText,
  ),
  deltas: deltasFlag,
  ...changeBoundFlags,
  dryRun: toggle('--dry-run', 'list what would be signed, and write nothing'),
};
type PublishFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<PublishFlags> = {
  examples: [
    'writ publish bundles/dns-edge --repository repo --keys keys --bundle dns-edge',
    'writ publish build --repository repo --keys keys --bundle dns-edge --channel canary --revision 4f1c2e9',
    'writ publish build --repository repo --keys keys --bundle dns-edge --stamp block.rpz --fixes 41',
    "writ publish . --repository ../repo --keys ../keys --bundle dns-edge --exclude .git --exclude '*.bak'",
    'writ publish build --repository repo --keys keys --bundle dns-edge --dry-run',
    'writ publish build --repository repo --keys keys --bundle dns-edge --max-removed 20% --max-growth 100%',
    'writ publish build --repository repo --keys keys --bundle dns-edge && ./upload   (writ help upload)',
  ],
  exitCodes: [
    '0  published, nothing new, or signed and waiting for the online keys',
    '1  keys missing or not opened, the repository does not verify, disk failure; nothing was published',
    '2  usage, or SOURCE cannot be published',
    changeBoundExitCode,
    '7  another process writes the repository',
  ],
  args: [['<source>', 'directory with the policy']],
  flags,
  acts: () => true,
  run: async ([source = ''], flags, context) => {
    const options = {
      ...flags,
      ...changeOptions(flags, context, 'publish'),
      source: context.at(source),
      change: changeBoundsOf(flags),
      limits: defaultArchiveLimits,
      secretFiles: secretFilesOf(flags, context),
    };
    warnOfUnknown(flags, context.reporter);
    if (flags.dryRun) return preview(await previewPublish(options), flags, context.reporter);
    const result = await publishBundle(options);
    narrate(result, context.reporter);
    return answer(result, flags);
  },
};

/** The passphrase file of the keys, if there is one: it must not be in the release. */
function secretFilesOf({ passphraseFile }: PublishFlags, { at }: CommandContext): string[] {
  return passphraseFile === undefined || passphraseFile === '-' ? [] : [at(passphraseFile)];
}

function preview(result: PreviewResult, flags: PublishFlags, reporter: Reporter): Answer {
  warnOfSource(result.tree, reporter);
  if (result.kind === 'would-publish') warnOfUnknownChange(shownChange(result), reporter);
  return previewAnswer(result, flags);
}

/** Warns of unknown features, because a mistyped name is signed too and then every host refuses the release. */
function warnOfUnknown({ requires }: PublishFlags, reporter: Reporter): void {
  const unknown = unknownFeatures(canonicalRequires(requires ?? []));
  if (unknown.length === 0) return;
  reporter.warn(
    `Writ ${writVersion} does not know ${unknown.join(', ')}: its hosts keep the previous release`,
  );
}

function narrate(result: PublishResult, reporter: Reporter): void {
  warnOfSource(result.tree, reporter);
  if (result.kind === 'nothing-new') {
    reporter.finish('read', filesText(result.tree));
    return;
  }
  warnOfUnknownChange(shownChange(result), reporter);
  const archive = `${sizeText(result.archiveBytes)}, ${shortDigest(result.archiveDigest)}`;
  reporter.finish('pack', `${filesText(result.tree, result.difference)}   ${archive}`);
  const { deltas } = result.release;
  if (deltas !== undefined) reporter.finish('delta', deltasText(deltas));
  // Probes on the hosts may wait for a stamp that this release does not have.
  if (result.previous?.stamped !== undefined && result.release.stamped === undefined)
    reporter.warn('the previous release was stamped, this one is not: was --stamp forgotten?');
  reportSigned({ ...result, signed: signedOf(result) }, reporter);
}

type NewResult = Exclude<PublishResult, { kind: 'nothing-new' }>;

type Compared = Pick<NewResult, 'previous' | 'change' | 'accepted' | 'withinBoundsOf' | 'lines'>;

function shownChange({ previous, ...change }: Compared): ShownChange {
  return { ...change, previousSerial: previous?.serial };
}

function signedOf({ role, version }: NewResult) {
  return [{ role, version }];
}

function filesText({ manifest, excluded }: SourceTree, difference?: ManifestDifference): string {
  const count = counted(manifest.files.length, 'file');
  const without = excluded.length === 0 ? '' : `; left out: ${firstOf(excluded)}`;
  if (difference === undefined) return `${count}${without}`;
  const { changed, added, removed } = difference;
  return `${count}: ${changed.length} changed, ${added.length} new, ${removed.length} removed${without}`;
}

function answer(result: PublishResult, flags: PublishFlags): Answer {
  const { release } = result;
  const name = `${release.bundle} ${release.channel}`;
  if (result.kind === 'nothing-new')
    return nothingNew(`${name} is serial ${release.serial} with this content`, {
      ...releaseDetails(release),
      ...sourceDetails(result.tree),
    });
  const waits = result.kind === 'waiting' ? { signed: signedOf(result) } : {};
  const details = { ...newDetails(result), ...waits };
  return changeAnswer(
    result,
    {
      ...{ outcome: 'published', details, what: `${name} ${serialText(result)}` },
      lines: changeLines(shownChange(result)),
    },
    flags,
  );
}

function serialText({ release, previous }: Pick<NewResult, 'release' | 'previous'>): string {
  const { serial, revision, fixes } = release;
  const note = revision === '' ? '' : ` (${revision})`;
  return `serial ${fromText(previous)}${serial}${note}${fixes === undefined ? '' : `, fixes ${fixes}`}`;
}

function fromText(previous: ReleaseInfo | undefined): string {
  return previous === undefined ? '' : `${previous.serial} -> `;
}

function releaseDetails(release: ReleaseInfo): Record<string, unknown> {
  const {
    bundle,
    channel,
    serial,
    revision,
    createdAtMs,
    manifest,
    withdrawn,
    stamped = {},
    requires,
    fixes,
  } = release;
  const createdAt = new Date(createdAtMs).toISOString();
  return {
    bundle,
    channel,
    serial,
    revision,
    createdAt,
    manifestDigest: manifest.digest,
    withdrawn,
    ...given({ requires, fixes }),
    ...stamped,
  };
}

function newDetails(result: NewResult): Record<string, unknown> {
  const { release, previous, tree, archiveBytes, archiveDigest, difference } = result;
  return {
    ...releaseDetails(release),
    previousSerial: previous?.serial ?? null,
    files: tree.manifest.files.length,
    archive: { digest: archiveDigest, bytes: archiveBytes },
    deltas: deltaDetails(release.deltas),
    ...sourceDetails(tree),
    difference: difference ?? null,
    ...changeDetails(shownChange(result)),
  };
}

/** Further files are only counted, because the list is too long for a terminal and --json has all of them. */
const maxListed = 1000;

/** @returns a row for each file that would be signed or removed */
function listOf({ manifest }: SourceTree, difference: ManifestDifference | undefined): string[][] {
  const [added, changed] = [new Set(difference?.added), new Set(difference?.changed)];
  const changeOf = (path: string): string =>
    difference === undefined || added.has(path) ? 'new' : changed.has(path) ? 'changed' : 'same';
  return [
    ...manifest.files.map((file) => [changeOf(file.path), sizeText(file.sizeBytes), file.path]),
    ...(difference?.removed ?? []).map((path) => ['removed', '', path]),
  ];
}

function listLines(rows: readonly string[][]): string[] {
  const left = rows.length - maxListed;
  const lines = table(['change', { right: 'size' }, 'file'], rows.slice(0, maxListed));
  return left <= 0 ? lines : [...lines, `  (${counted(left, 'more file')}; --json lists all)`];
}

function previewAnswer(result: PreviewResult, flags: PublishFlags): Answer {
  const name = `${flags.bundle} ${flags.channel}`;
  if (result.kind === 'nothing-new') {
    const { serial } = result.release;
    return previewOf(
      'publish',
      nothingNew(`${name} is serial ${serial} with this content`, { serial, ...sourceDetails(result.tree) }),
    );
  }
  const { release, previous, tree, archiveBytes, difference } = result;
  return previewOf('publish', {
    outcome: 'would-publish',
    details: {
      serial: release.serial,
      previousSerial: previous?.serial ?? null,
      manifestDigest: release.manifest.digest,
      archiveBytes,
      deltas: deltaDetails(release.deltas),
      ...given({ requires: release.requires, fixes: release.fixes }),
      difference: difference ?? null,
      ...changeDetails(shownChange(result)),
      contents: tree.manifest.files.map(({ path, sizeBytes }) => ({ path, bytes: sizeBytes })),
      ...sourceDetails(tree),
    },
    lines: [
      `WOULD PUBLISH ${name} ${serialText({ release, previous })}`,
      `  ${filesText(tree, difference)}   ${sizeText(archiveBytes)}`,
      ...(release.deltas === undefined ? [] : [`  ${deltasText(release.deltas)}`]),
      ...changeLines(shownChange(result)),
      ...listLines(listOf(tree, difference)),
    ],
  });
}
