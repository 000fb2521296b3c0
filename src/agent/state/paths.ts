// The paths of all files of a host, and the names of trees, releases and links: how Writ makes and parses them. No I/O.
import { join } from 'node:path';
import type { AgentConfig } from '../../core/config/config.js';
import { type Digest, digest12 } from '../../core/names.js';

export interface HostPaths {
  readonly state: string;
  readonly lock: string;
  readonly trust: string;
  readonly staging: string;
  /** Partial downloads. */
  readonly partials: string;
  readonly archives: string;
  readonly journal: string;
  /** The reserve file, which a restore on a full disk may use up; a second one for the journal. */
  readonly reserve: string;
  readonly journalReserve: string;
  readonly ledger: string;
  readonly rejected: string;
  readonly history: string;
  /** The state mark, and its copy for the present boot. */
  readonly stateMark: string;
  readonly knownMark: string;
  /** The trust floors of the present boot: versions of metadata that it accepted. */
  readonly trustFloors: string;
  readonly installId: string;
  /** Facts about the fleet server of this host, and the key that signs its host reports. */
  readonly fleet: string;
  /** The only directory that workers, containers and watchers read. */
  readonly policy: string;
  readonly current: string;
  readonly generations: string;
  readonly bundles: string;
  readonly run: string;
  readonly status: string;
  readonly socket: string;
  /** The socket of a group of users who may read the status. */
  readonly readSocket: string;
}

/** @returns all paths of a host with this configuration */
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

/** @returns `<serial>-<digest12>`: the directory of one release in `archives/<bundle>/` */
export function releaseDirectoryName(serial: number, manifestDigest: Digest): string {
  return `${serial}-${digest12(manifestDigest)}`;
}

/** @returns `<serial>-<digest12>.<n>`: the directory of the tree for generation n; no name is ever used twice */
export function treeDirectoryName(serial: number, manifestDigest: Digest, generation: number): string {
  return `${releaseDirectoryName(serial, manifestDigest)}.${generation}`;
}

export interface TreeName {
  readonly serial: number;
  readonly digest12: string;
  readonly generation: number;
  /** As `releaseDirectoryName` returns it. */
  readonly release: string;
}

/** Parses the name of a tree's directory. @returns undefined for a name that Writ does not make */
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

/** @returns the text of the link `current`; relative, so that `policy/` can be mounted anywhere */
export function generationLink(generation: number): string {
  return `generations/${generation}`;
}

/** Parses the text of the link `current`. @returns undefined for a text that Writ does not make */
export function parseGenerationLink(text: string): number | undefined {
  const match = /^generations\/([1-9][0-9]{0,15})$/.exec(text);
  return match ? Number(match[1]) : undefined;
}

/** @returns the text of a bundle's link in the directory of a generation */
export function bundleLink(bundle: string, tree: string): string {
  return `../../bundles/${bundle}/${tree}`;
}

/** Parses the text of a bundle's link. @returns undefined for a text that Writ does not make */
export function parseBundleLink(bundle: string, text: string): TreeName | undefined {
  const prefix = `../../bundles/${bundle}/`;
  return text.startsWith(prefix) ? parseTreeName(text.slice(prefix.length)) : undefined;
}

/** @returns what a notification names: the number of the generation, and the real path of its directory */
export function notificationTarget(
  { generations }: Pick<HostPaths, 'generations'>,
  generation: number,
): { readonly generation: number; readonly path: string } {
  return { generation, path: join(generations, String(generation)) };
}
