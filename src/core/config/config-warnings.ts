// What is worth a look in a configuration and no mistake: bundles that nothing examines, checks of what is in use already, daemons that are known to say yes to
// what they cannot read, directories that a daemon has still to make. Pure; what is on the host is asked of whoever can look.

import { durationMs } from '../names.js';
import type { ConfigFile } from './config-schema.js';
import { at, type ConfigPath, type Finding, group, list, valuesAt } from './findings.js';
import { sandboxWarnings } from './sandbox-warnings.js';
import { type HostLook, textsAt } from './tolerated-rules.js';

/** What the answer of a group's driver is worth, in the order of the groups; undefined where no driver was made. */
export type GroupVerdicts = readonly ('true' | 'early' | 'silent' | undefined)[];

/** What making the driver of each group has shown, in the order of the groups. */
export interface GroupTrials {
  readonly verdicts: GroupVerdicts;
  /** True where the driver sees no process of its workers. */
  readonly areUnseen: readonly boolean[];
}

export function warningsOf(
  file: ConfigFile,
  { verdicts, areUnseen }: GroupTrials,
  look: HostLook | undefined,
): readonly Finding[] {
  return [
    ...uncheckedBundles(file),
    ...checksOfLivePolicy(file),
    ...unprovenGroups(file, verdicts),
    ...unobservedGroups(file, areUnseen),
    ...wordsAlone(file),
    ...slowProbes(file),
    ...sandboxWarnings(file, look),
    ...(look === undefined ? [] : missingPlaces(file, look)),
  ];
}

function uncheckedBundles(file: ConfigFile): Finding[] {
  const notified = new Set((file.workers ?? []).flatMap((worker) => worker.uses));
  return file.bundles.flatMap((bundle, index): Finding[] => {
    if (bundle.checks?.length || !notified.has(bundle.name)) return [];
    const text = 'has no check: a file that its workers cannot read would reach them';
    return [at(['bundles', index], text)];
  });
}

/** In a sandbox the live path leads to the candidate; without one it leads to what is in use, and every release passes. */
function* checksOfLivePolicy(file: ConfigFile): Generator<Finding> {
  for (const { path, value } of valuesAt(file, ['bundles', '*', 'checks', '*'])) {
    const { run, sandbox = file.sandbox } = group(value);
    if (sandbox !== 'off' || run === undefined || /\{(?:candidate|bundle)\}/.test(list(run).join(' ')))
      continue;
    const text =
      'names neither {candidate} nor {bundle}: without a sandbox it judges the policy in use, unless its program reads WRIT_BUNDLE_DIR';
    yield at([...path, 'run'], text);
  }
}

const lies = {
  early: 'says yes before it has read a policy',
  silent: 'says nothing, whether it could read a policy or not',
} as const;

/** Such a daemon serves an empty or an old policy, and passes for well. */
function unprovenGroups({ workers = [], bundles }: ConfigFile, verdicts: GroupVerdicts): Finding[] {
  const unchecked = new Set(bundles.filter(({ checks = [] }) => checks.length === 0).map(({ name }) => name));
  return workers.flatMap(({ name, uses, probe, load }, index): Finding[] => {
    const verdict = verdicts[index];
    const bare = uses.filter((bundle) => unchecked.has(bundle));
    if (verdict === undefined || verdict === 'true' || bare.length === 0) return [];
    if (probe !== undefined || load !== undefined) return [];
    const add = `add a \`probe\` that asks it, or a check to ${bare.join(', ')}`;
    return [at(['workers', index], `group ${name}: its daemon ${lies[verdict]}; ${add}`)];
  });
}

/** Such a worker may be restarted and serve nothing, and stays confirmed. `process: none` says that this is known. */
function unobservedGroups({ workers = [] }: ConfigFile, areUnseen: readonly boolean[]): Finding[] {
  return workers.flatMap(({ name, process, probe }, index): Finding[] => {
    if (areUnseen[index] !== true || process === 'none' || probe?.every !== undefined) return [];
    const text = `group ${name}: a restart of its worker is not seen, so that its proof stays; add \`process\`, or a \`probe\` with \`every\``;
    return [at(['workers', index], text)];
  });
}

const commands = ['canary', 'load', 'probe', 'reset'];

/** Whoever writes a policy may have them said. */
function* wordsAlone(file: ConfigFile): Generator<Finding> {
  for (const { path, value } of commands.flatMap((key) => valuesAt(file, ['workers', '*', key]))) {
    const { unreachable, pidFile } = group(value);
    const { match, exit } = group(unreachable);
    if (match === undefined || exit !== undefined || pidFile !== undefined) continue;
    const place = path[2] === 'reset' ? file.workers?.[Number(path[1])]?.process : undefined;
    const { unit, pidFile: ofGroup } = group(place);
    if (unit !== undefined || ofGroup !== undefined) continue;
    const add = path[2] === 'reset' ? '`exit`, or `process` to the group' : '`exit` or `pidFile`';
    const text = `excuses a no by words alone, which a program may repeat from a policy: add ${add}`;
    yield at([...path, 'unreachable', 'match'], text);
  }
}

function* slowProbes({ workers = [] }: ConfigFile): Generator<Finding> {
  for (const [index, { probe }] of workers.entries()) {
    const { every, timeout } = probe ?? {};
    if (every === undefined || timeout === undefined || durationMs(timeout) <= durationMs(every)) continue;
    const text = `${every} is less than its timeout of ${timeout}: one that hangs is asked less often`;
    yield at(['workers', index, 'probe', 'every'], text);
  }
}

const placesOfDaemons = [
  ...['kresd', 'line', 'http', 'supervisord', 'pidFile', 'http.unix'].map((key) => `reset.${key}`),
  ...['canary', 'load', 'probe', 'process'].map((hook) => `${hook}.pidFile`),
];

/** The daemon may make it when it starts; a typo looks the same. */
function* missingPlaces(file: ConfigFile, look: HostLook): Generator<Finding> {
  const data = group(file);
  for (const place of placesOfDaemons) {
    for (const { path, text } of textsAt(data, `workers.*.${place}`)) {
      if (!text.startsWith('/')) continue;
      const why = look.directory(fixedDirectory(text));
      if (why !== undefined) yield at(path, `${why}: nobody is found there`);
      else if (place.endsWith('pidFile')) yield* missingPidFile(text, path, look);
    }
  }
}

function* missingPidFile(text: string, path: ConfigPath, look: HostLook): Generator<Finding> {
  const why = /[*?[{]/.test(text) ? undefined : look.file(text);
  if (why === undefined) return;
  yield at(path, `${why}: until it is, its daemon counts as dead, and a no to the dead is none`);
}

/** @returns the directory of a path, without its parts from the first glob or placeholder on */
function fixedDirectory(path: string): string {
  const parts = path.split('/').slice(0, -1);
  const open = parts.findIndex((part) => /[*?[{]/.test(part));
  return (open === -1 ? parts : parts.slice(0, open)).join('/') || '/';
}
