// The key `process` of a group, which sets the process identity of its workers: its rules and its values.

import { given } from '../given.js';
import type { ProcessConfig, ProcessPlace } from './config.js';
import type { ProcessFile } from './config-keys.js';
import { asGroup, at, type ConfigPath, type Finding, type Group } from './findings.js';

/** The properties of a driver that the rules need. */
interface ProcessDriver {
  readonly name: string;
  readonly knowsProcess?: boolean;
}

const placeKeys = ['unit', 'pidFile', 'listens'] as const;
type PlaceKey = (typeof placeKeys)[number];

/**
 * @param driver of the group; undefined if its `reset` names no driver
 * @returns findings for `process`
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
  const reset = asGroup(worker['reset']);
  if (process === 'none' && driver?.name === 'signal') yield at(own, 'must name a process: it is signalled');
  yield* aliasRules(process, reset['pidFile'], own);
  const places = placeKeys.filter((key) => asGroup(process)[key] !== undefined);
  if (places.length > 1) yield at(own, `has ${places.join(' and ')}: give one of them`);
  for (const key of places) {
    const text = asGroup(process)[key];
    if (typeof text === 'string') yield* placeRules({ key, text }, [...own, key], driver);
  }
}

/** `reset.pidFile` of 0.1.0 is another name of `process.pidFile`. */
function* aliasRules(process: unknown, alias: unknown, path: ConfigPath): Generator<Finding> {
  if (alias === undefined) return;
  const { pidFile } = asGroup(process);
  const others = placeKeys.some((key) => key !== 'pidFile' && asGroup(process)[key] !== undefined);
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
  // With the driver `signal` each match of a glob is a worker. With other drivers a match does not identify a worker.
  if (name !== 'listens' && /[*?[\]{}]/.test(plain) && !isSignalGlob)
    yield at(path, 'may have {worker} only: a glob does not identify a worker');
  if (driver?.name === 'signal' && text.includes('{worker}'))
    yield at(path, 'must not have {worker}: the workers of `signal` have no other name');
}

/**
 * @returns where the process of a group is found, and its program. A part that the file does not set is left out.
 */
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
