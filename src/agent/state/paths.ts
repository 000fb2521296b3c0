// Where everything is on a host, and how names in it are made and read.
// Owns names only: it touches no file.
import { join } from 'node:path';
import type { AgentConfig } from '../../core/config/config.js';
import { type Digest, digest12 } from '../../core/names.js';

export interface HostPaths {
  readonly state: string;
  readonly lock: string;
  readonly trust: string;
  readonly staging: string;
  /** Of downloads that were cut. */
  readonly partials: string;
  readonly archives: string;
  readonly journal: string;
  /** Space that a way back may use up on a full disk. */
  readonly reserve: string;
  readonly journalReserve: string;
  readonly ledger: string;
  readonly rejected: string;
  readonly history: string;
  /** What makes this state directory known again, and its copy for one boot. */
  readonly stateMark: string;
  readonly knownMark: string;
  /** The versions of metadata that this boot has accepted. */
  readonly trustFloors: string;
  readonly installId: string;
  /** What a host knows of the fleet server that it reports to, and the key that signs its reports. */
  readonly fleet: string;
  /** The public side: the one directory that workers, containers and watchers see. */
  readonly policy: string;
  readonly current: string;
  readonly generations: string;
  readonly bundles: string;
  readonly run: string;
  readonly status: string;
  readonly socket: string;
  /** For a group that may look. */
  readonly readSocket: string;
}

/** @returns every path of a host, from its configuration. */
export function hostPaths(config: Pick<AgentConfig, 'state' | 'policy' | 'run' | 'socket'>): HostPaths {
  const { state, policy, run, socket } = config;
  return {
    state,
    lock: join(state, 'lock'),
    trust: join(state, 'trust'),
    staging: join(state, 'staging'),
    partials: join(state, 'partials'),
    archives: join(state, 'archives'),
    journal: join(state, 'journal.json'),
    reserve: join(state, 'reserve'),
    journalReserve: join(state, 'journal.reserve'),
    ledger: join(state, 'ledger.json'),
    rejected: join(state, 'rejected.json'),
    history: join(state, 'history.jsonl'),
    stateMark: join(state, 'state-mark.json'),
    knownMark: join(run, 'state-mark.json'),
    trustFloors: join(run, 'trust-floors.json'),
    installId: join(state, 'install-id.json'),
    fleet: join(state, 'fleet'),
    policy,
    current: join(policy, 'current'),
    generations: join(policy, 'generations'),
    bundles: join(policy, 'bundles'),
    run,
    status: join(run, 'status.json'),
    socket,
    readSocket: join(run, 'read.sock'),
  };
}

/** `<serial>-<digest12>`: one release of a bundle, in `archives/`. */
export function releaseName(serial: number, manifestDigest: Digest): string {
  return `${serial}-${digest12(manifestDigest)}`;
}

/** `<serial>-<digest12>.<n>`: one tree, made for generation n; a name is never used twice. */
export function treeName(serial: number, manifestDigest: Digest, generation: number): string {
  return `${releaseName(serial, manifestDigest)}.${generation}`;
}

export interface TreeName {
  readonly serial: number;
  readonly digest12: string;
  readonly generation: number;
  /** The release's directory name in `archives/<bundle>/`. */
  readonly release: string;
}

/** Reads a tree's name back; undefined for a name that Writ does not make. */
export function parseTreeName(name: string): TreeName | undefined {
  const match = /^([1-9][0-9]{0,15})-([0-9a-f]{12})\.([1-9][0-9]{0,15})$/.exec(name);
  if (!match?.[1] || !match[2] || !match[3]) return undefined;
  return {
    serial: Number(match[1]),
    digest12: match[2],
    generation: Number(match[3]),
    release: `${match[1]}-${match[2]}`,
  };
}

/** The text of the `current` link; relative, so that `policy/` can be mounted anywhere. */
export function generationLink(generation: number): string {
  return `generations/${generation}`;
}

/** Reads the text of the `current` link; undefined for one that Writ does not make. */
export function parseGenerationLink(text: string): number | undefined {
  const match = /^generations\/([1-9][0-9]{0,15})$/.exec(text);
  return match ? Number(match[1]) : undefined;
}

/** The text of a bundle's link in a generation directory. */
export function bundleLink(bundle: string, tree: string): string {
  return `../../bundles/${bundle}/${tree}`;
}

/** Reads a bundle's link back; undefined for one that Writ does not make. */
export function parseBundleLink(bundle: string, text: string): TreeName | undefined {
  const prefix = `../../bundles/${bundle}/`;
  return text.startsWith(prefix) ? parseTreeName(text.slice(prefix.length)) : undefined;
}

/** A generation as workers are notified of it. @returns its number, and the real path of its directory */
export function targetAt(
  { generations }: Pick<HostPaths, 'generations'>,
  generation: number,
): { readonly generation: number; readonly path: string } {
  return { generation, path: join(generations, String(generation)) };
}
