// `writ diff`: compares two retained generations, or the active generation with the releases that the server offers. Changes nothing
// of this host. Downloads go to a directory of their own, with a copy of this host's trust store, so that the command and the agent
// do not block each other.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentConfig, BundleConfig } from '../../core/config/config.js';
import { WritError } from '../../core/errors.js';
import { type Digest, digestHex } from '../../core/names.js';
import {
  type BundleDifference,
  type DiffSide,
  diffPolicies,
  maxTextBytes,
  type ReadBundleFile,
} from '../../core/status/policy-diff.js';
import { createDurableFs, type DurableFs } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';
import { silentLog } from '../../platform/telemetry/silent-log.js';
import { systemClock } from '../../platform/time/clock.js';
import type { RepositoryClient } from '../../trust/repository-client.js';
import { loadConfig } from '../config/load-config.js';
import { readBundles } from '../generations/generation-contents.js';
import {
  activeGenerationNumber,
  listDirectories,
  listGenerations,
  readGeneration,
} from '../generations/generations.js';
import { fetchArchive } from '../staging/fetch-archive.js';
import { stageBundle } from '../staging/stage-bundle.js';
import { openClient } from '../startup/open-host.js';
import { openLedger } from '../state/ledger-file.js';
import { type HostPaths, hostPaths } from '../state/paths.js';

export interface DiffPolicyOptions {
  readonly configPath: string;
  readonly version: string;
  readonly signal: AbortSignal;
  /** The number of a generation; undefined: the previous one. */
  readonly from?: number;
  /** The number of a generation; undefined: the active one. */
  readonly to?: number;
  /** `server`: compares the active generation with the newest offered releases. */
  readonly against: 'generations' | 'server';
  /** False: compares only names and sizes. */
  readonly hasTexts: boolean;
}

export interface PolicyDifference {
  readonly from: number | 'nothing';
  readonly to: number | 'server';
  readonly bundles: readonly BundleDifference[];
  /** Configured bundles that the server does not offer, so that they do not change. */
  readonly notListed: readonly string[];
}

/**
 * Compares two retained generations, or the active generation with the offered releases, as `against` selects. Changes nothing.
 * @returns `from` and `to`: numbers, but `nothing` if no generation is active and `server` for the offered side. `bundles` has
 *   the bundles that differ, sorted by name, and is empty for equal policies. `notListed` names configured bundles that the
 *   server does not offer, and is empty for two generations
 * @throws WritError USAGE for a generation that is not retained, or without an active or previous one; STATE_DAMAGED; CONFIG_*
 * @throws WritError against the server: the codes of a refresh, a download or staging, such as SERVER_UNREACHABLE,
 *   DOWNLOAD_DIGEST, INTERRUPTED, DISK_*
 */
export async function diffPolicy(options: DiffPolicyOptions): Promise<PolicyDifference> {
  const { config } = loadConfig(options.configPath);
  const paths = hostPaths(config);
  if (options.against === 'server') return diffServer(config, paths, options);
  const from = options.from ?? previousOf(paths);
  const to = options.to ?? activeOf(paths);
  const [old, now] = [policyOf(paths, from), policyOf(paths, to)];
  return { from, to, bundles: compare(old, now, options), notListed: [] };
}

/** A bundle of one side of the comparison. */
interface PolicyPart extends DiffSide {
  /** The digest of its manifest. */
  readonly digest: Digest;
  readonly tree: string;
}

/** The bundles of one side, by name. */
type Policy = Map<string, PolicyPart>;

function compare(from: Policy, to: Policy, { hasTexts }: DiffPolicyOptions): BundleDifference[] {
  const read = hasTexts ? { read: { from: readerOf(from), to: readerOf(to) } } : {};
  return diffPolicies({ from, to, ...read });
}

/** Reads a file only if it has the signed digest, so that the output shows signed text alone. */
function readerOf(policy: Policy): ReadBundleFile {
  return (bundle, path) => {
    const part = policy.get(bundle);
    const file = part?.manifest.files.find((one) => one.path === path);
    if (part === undefined || file === undefined) return undefined;
    const verdict = readSmallFile(join(part.tree, path), { maxBytes: maxTextBytes, links: 'refused' });
    if (verdict.kind !== 'read') return undefined;
    const digest = createHash('sha256').update(verdict.bytes).digest('hex');
    return digest === digestHex(file.digest) ? verdict.bytes : undefined;
  };
}

function policyOf(paths: HostPaths, generation: number): Policy {
  // A host without a first pull has no generations directory.
  const kept = fs.existsSync(paths.generations) ? listGenerations(paths) : [];
  if (!kept.includes(generation)) {
    throw new WritError('USAGE', `generation ${generation} is not kept on this host`, {
      facts: { generation, kept },
      hint: `Kept generations: ${kept.join(', ') || 'none'}.`,
    });
  }
  const policy: Policy = new Map();
  for (const [bundle, { entry, record, manifest }] of readBundles(paths, readGeneration(paths, generation))) {
    const { serial, revision, manifest: signed } = record.release;
    policy.set(bundle, { serial, revision, manifest, digest: signed.digest, tree: entry.treePath });
  }
  return policy;
}

function activeOf(paths: HostPaths): number {
  const active = activeGenerationNumber(paths);
  if (active !== undefined) return active;
  throw new WritError('USAGE', 'no policy is active', { hint: 'Run `writ pull`, or `writ diff --server`.' });
}

function previousOf(paths: HostPaths): number {
  const { previous } = openLedger(paths.ledger, createDurableFs()).read();
  if (previous !== undefined) return previous;
  // After a rollback the ledger has no previous generation: the newest other one is that which was rolled back.
  const active = activeGenerationNumber(paths);
  const others = fs.existsSync(paths.generations)
    ? listGenerations(paths).filter((one) => one !== active)
    : [];
  if (others.length > 0) return Math.max(...others);
  throw new WritError('USAGE', 'this host has no previous generation', {
    hint: 'Give two generations: `writ diff A B`.',
  });
}

async function diffServer(
  config: AgentConfig,
  paths: HostPaths,
  options: DiffPolicyOptions,
): Promise<PolicyDifference> {
  const durable = createDurableFs();
  const directory = durable.makeScratch('diff.scratch', join(tmpdir(), 'writ-diff-'));
  const trust = join(directory, 'trust');
  copyTrust(durable, paths.trust, trust);
  const parts = { clock: systemClock, log: silentLog(), version: options.version, durable };
  const client = openClient(config, { ...parts, paths: { ...paths, trust } });
  try {
    await client.refresh({ signal: options.signal });
    const active = activeGenerationNumber(paths);
    const old: Policy = active === undefined ? new Map() : policyOf(paths, active);
    const policy: Policy = new Map();
    const notListed: string[] = [];
    const context = { config, client, durable, directory, old, signal: options.signal };
    for (const bundle of config.bundles) {
      const listed = await stageListed(context, bundle);
      if (listed === undefined) notListed.push(bundle.name);
      const part = listed ?? old.get(bundle.name);
      if (part !== undefined) policy.set(bundle.name, part);
    }
    return { from: active ?? 'nothing', to: 'server', bundles: compare(old, policy, options), notListed };
  } finally {
    await client.close();
    durable.removeTree('diff.remove', directory);
  }
}

const maxTrustFileBytes = 16_000_000;

/** Copies the trust store of this host, so that the refresh refuses an older repository here too. */
function copyTrust(durable: DurableFs, from: string, to: string): void {
  durable.makeDirectory('diff.trust-directory', to, 0o700);
  if (!fs.existsSync(from)) return;
  for (const name of listDirectories(from)) copyTrust(durable, join(from, name), join(to, name));
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const verdict = readSmallFile(join(from, entry.name), { maxBytes: maxTrustFileBytes, links: 'refused' });
    if (verdict.kind === 'read') durable.createFile('diff.trust', join(to, entry.name), verdict.bytes, 0o600);
  }
}

interface ServerContext {
  readonly config: AgentConfig;
  readonly client: RepositoryClient;
  readonly durable: DurableFs;
  readonly directory: string;
  readonly old: Policy;
  readonly signal: AbortSignal;
}

/** Downloads and stages the offered release of a bundle. @returns undefined for a bundle that the server does not offer */
async function stageListed(
  { config, client, durable, directory, old, signal }: ServerContext,
  { name, channel, mode }: BundleConfig,
): Promise<PolicyPart | undefined> {
  const target = await client.target(name, channel, { signal });
  if (target === undefined) return undefined;
  const { serial, revision, manifest: signed } = target.release;
  const known = old.get(name);
  // The active tree has the same files, so no download is needed.
  if (known?.digest === signed.digest) return { ...known, serial, revision };
  const place = join(directory, `bundle-${name}`);
  durable.makeDirectory('diff.bundle', place, 0o700);
  const fetching = { client, target, directory: place, fs: durable, limits: config.limits, signal };
  const archive = await fetchArchive(fetching);
  const staged = await stageBundle({
    ...{ archive, directory: join(place, 'tree'), fs: durable, limits: config.limits, mode, signal },
    mtimeSeconds: Math.floor(systemClock.nowMs() / 1000),
  });
  return { serial, revision, manifest: staged.manifest, digest: signed.digest, tree: staged.treePath };
}
