// Warnings about a valid configuration: bundles without checks, checks that judge the active policy, daemons that confirm
// policy that they cannot read, directories that a daemon has not created yet. Pure; a HostFactSource provides the facts
// about the host.

import { durationMs } from '../names.js';
import type { ConfigFile } from './config-schema.js';
import { asGroup, asList, at, type ConfigPath, type Finding, valuesAt } from './findings.js';
import { sandboxWarnings } from './sandbox-warnings.js';
import { type HostFactSource, textsAt } from './tolerated-rules.js';

/** The verdict class of each group's driver, in the order of the groups; undefined without a driver. */
export type GroupVerdicts = readonly ('true' | 'early' | 'silent' | undefined)[];

/** Facts from creating the driver of each group, in the order of the groups. */
export interface GroupTrials {
  readonly verdicts: GroupVerdicts;
  /** True if the driver cannot identify the processes of its workers. */
  readonly areProcessesUnknown: readonly boolean[];
}

/**
 * @param hostFacts facts about this host; undefined in a check of a file for another host, which leaves out the
 * warnings that need them
 * @returns the warnings in the order of their rules; empty for a file without one
 */
export function configWarnings(
  file: ConfigFile,
  { verdicts, areProcessesUnknown }: GroupTrials,
  hostFacts: HostFactSource | undefined,
): readonly Finding[] {
  return [
    ...uncheckedBundles(file),
    ...checksOfLivePolicy(file),
    ...unconfirmedGroups(file, verdicts),
    ...unobservedGroups(file, areProcessesUnknown),
    ...textOnlyExcuses(file),
    ...slowProbes(file),
    ...sandboxWarnings(file, hostFacts),
    ...(hostFacts === undefined ? [] : missingPlaces(file, hostFacts)),
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

/** In a sandbox the path of the active policy shows the candidate. Without one the check judges the policy in use and always passes. */
function* checksOfLivePolicy(file: ConfigFile): Generator<Finding> {
  for (const { path, value } of valuesAt(file, ['bundles', '*', 'checks', '*'])) {
    const { run, sandbox = file.sandbox } = asGroup(value);
    if (sandbox !== 'off' || run === undefined || /\{(?:candidate|bundle)\}/.test(asList(run).join(' ')))
      continue;
    const text =
      'names neither {candidate} nor {bundle}: without a sandbox it judges the policy in use, unless its program reads WRIT_BUNDLE_DIR';
    yield at([...path, 'run'], text);
  }
}

const verdictTexts = {
  early: 'answers before it has read a policy',
  silent: 'does not answer whether it could read a policy',
} as const;

/** Finds groups in which a daemon may use an empty or old policy and still count as healthy. */
function unconfirmedGroups({ workers = [], bundles }: ConfigFile, verdicts: GroupVerdicts): Finding[] {
  const unchecked = new Set(bundles.filter(({ checks = [] }) => checks.length === 0).map(({ name }) => name));
  return workers.flatMap(({ name, uses, probe, load }, index): Finding[] => {
    const verdict = verdicts[index];
    const bare = uses.filter((bundle) => unchecked.has(bundle));
    if (verdict === undefined || verdict === 'true' || bare.length === 0) return [];
    if (probe !== undefined || load !== undefined) return [];
    const add = `add a \`probe\` that asks it, or a check to ${bare.join(', ')}`;
    return [at(['workers', index], `group ${name}: its daemon ${verdictTexts[verdict]}; ${add}`)];
  });
}

/** Finds groups in which workers stay confirmed after an unnoticed restart. `process: none` states that the operator knows this. */
function unobservedGroups({ workers = [] }: ConfigFile, areProcessesUnknown: readonly boolean[]): Finding[] {
  return workers.flatMap(({ name, process, probe }, index): Finding[] => {
    if (areProcessesUnknown[index] !== true || process === 'none' || probe?.every !== undefined) return [];
    const text = `group ${name}: a restart of its worker is not noticed, so that it stays confirmed; add \`process\`, or a \`probe\` with \`every\``;
    return [at(['workers', index], text)];
  });
}

const commands = ['canary', 'load', 'probe', 'reset'];

/** Finds `unreachable.match` without another condition: an author of policy can make a program print the matched text. */
function* textOnlyExcuses(file: ConfigFile): Generator<Finding> {
  for (const { path, value } of commands.flatMap((key) => valuesAt(file, ['workers', '*', key]))) {
    const { unreachable, pidFile } = asGroup(value);
    const { match, exit } = asGroup(unreachable);
    if (match === undefined || exit !== undefined || pidFile !== undefined) continue;
    const place = path[2] === 'reset' ? file.workers?.[Number(path[1])]?.process : undefined;
    const { unit, pidFile: ofGroup } = asGroup(place);
    if (unit !== undefined || ofGroup !== undefined) continue;
    const add = path[2] === 'reset' ? '`exit`, or `process` to the group' : '`exit` or `pidFile`';
    const text = `ignores a refusal by its text alone, which a program may repeat from a policy: add ${add}`;
    yield at([...path, 'unreachable', 'match'], text);
  }
}

function* slowProbes({ workers = [] }: ConfigFile): Generator<Finding> {
  for (const [index, { probe }] of workers.entries()) {
    const { every, timeout } = probe ?? {};
    if (every === undefined || timeout === undefined || durationMs(timeout) <= durationMs(every)) continue;
    const text = `${every} is less than its timeout of ${timeout}: a probe that hangs runs less often`;
    yield at(['workers', index, 'probe', 'every'], text);
  }
}

const daemonPlaces = [
  ...['kresd', 'line', 'http', 'supervisord', 'pidFile', 'http.unix'].map((key) => `reset.${key}`),
  ...['canary', 'load', 'probe', 'process'].map((hook) => `${hook}.pidFile`),
];

/** Only a warning, because a daemon may create the path at its start; a typing error has the same effect. */
function* missingPlaces(file: ConfigFile, hostFacts: HostFactSource): Generator<Finding> {
  const data = asGroup(file);
  for (const place of daemonPlaces) {
    for (const { path, text } of textsAt(data, `workers.*.${place}`)) {
      if (!text.startsWith('/')) continue;
      const why = hostFacts.directory(fixedDirectory(text));
      if (why !== undefined) yield at(path, `${why}: no worker is found there`);
      else if (place.endsWith('pidFile')) yield* missingPidFile(text, path, hostFacts);
    }
  }
}

function* missingPidFile(text: string, path: ConfigPath, hostFacts: HostFactSource): Generator<Finding> {
  const why = /[*?[{]/.test(text) ? undefined : hostFacts.file(text);
  if (why === undefined) return;
  yield at(
    path,
    `${why}: until it exists, its daemon counts as dead, and a refusal by a dead daemon is ignored`,
  );
}

/** @returns the directory of a path, without its parts from the first glob or placeholder on */
function fixedDirectory(path: string): string {
  const parts = path.split('/').slice(0, -1);
  const open = parts.findIndex((part) => /[*?[{]/.test(part));
  return (open === -1 ? parts : parts.slice(0, open)).join('/') || '/';
}
