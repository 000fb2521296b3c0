// `process` of a group, which says what process a worker is: its rules, and its values. Pure.

import { given } from '../given.js';
import type { ProcessConfig, ProcessPlace } from './config.js';
import type { ProcessFile } from './config-keys.js';
import { at, type ConfigPath, type Finding, type Group, group } from './findings.js';

/** What the rules need to know of the driver of a group. */
interface ProcessDriver {
  readonly name: string;
  readonly knowsProcess?: boolean;
}

const placeKeys = ['unit', 'pidFile', 'listens'] as const;
type PlaceKey = (typeof placeKeys)[number];

/**
 * @param driver of the group; undefined where its `reset` names none
 * @returns what is wrong with `process`
 */
export function* processRules(
  worker: Group,
  path: ConfigPath,
  driver: ProcessDriver | undefined,
): Generator<Finding> {
  const { process } = worker;
  if (process === undefined) return;
  const own = [...path, 'process'];
  if (worker['reset'] === undefined) yield at(own, 'is only used with `reset`: a loader has no process');
  if (driver?.knowsProcess === true)
    yield at(own, `is not used with ${driver.name}, which knows the processes of its workers`);
  const reset = group(worker['reset']);
  if (process === 'none' && driver?.name === 'signal') yield at(own, 'must name a process: it is signalled');
  yield* aliasRules(process, reset['pidFile'], own);
  const places = placeKeys.filter((key) => group(process)[key] !== undefined);
  if (places.length > 1) yield at(own, `has ${places.join(' and ')}: give one of them`);
  for (const key of places) {
    const text = group(process)[key];
    if (typeof text === 'string') yield* placeRules({ key, text }, [...own, key], driver);
  }
}

/** `reset.pidFile` of 0.1.0 is another name of `process.pidFile`. */
function* aliasRules(process: unknown, alias: unknown, path: ConfigPath): Generator<Finding> {
  if (alias === undefined) return;
  const { pidFile } = group(process);
  const others = placeKeys.some((key) => key !== 'pidFile' && group(process)[key] !== undefined);
  if (process === 'none' || others || (pidFile !== undefined && pidFile !== alias))
    yield at(path, 'and `reset.pidFile` name different processes: leave out `reset.pidFile`');
}

function* placeRules(
  { key: name, text }: { readonly key: PlaceKey; readonly text: string },
  path: ConfigPath,
  driver: ProcessDriver | undefined,
): Generator<Finding> {
  const plain = text.replaceAll('{worker}', '');
  const isSignalGlob = name === 'pidFile' && driver?.name === 'signal';
  // Only where its matches are the workers does a glob say which process is which worker.
  if (name !== 'listens' && /[*?[\]{}]/.test(plain) && !isSignalGlob)
    yield at(path, 'may have {worker} only: a glob does not say which worker it is');
  if (driver?.name === 'signal' && text.includes('{worker}'))
    yield at(path, 'must not have {worker}: the workers of `signal` have no other name');
}

export function buildProcess(process: ProcessFile): ProcessConfig {
  if (process === 'none') return { place: { kind: 'none' } };
  const { program } = process;
  return given({ place: processPlace(process), program });
}

function processPlace({ unit, pidFile, listens }: Exclude<ProcessFile, string>): ProcessPlace | undefined {
  if (unit !== undefined) return { kind: 'unit', unit };
  if (pidFile !== undefined) return { kind: 'pidFile', path: pidFile };
  return listens === undefined ? undefined : { kind: 'listens', address: listens };
}
