// The publisher's side of a soak, with the publisher's own code: releases of all kinds, withdrawals, root ceremonies and
// collection. Records each release for the readers before a host can download it. Owns the kind of each serial.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { publishBundle } from '../../../../src/publisher/release/publish.js';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { noChange } from '../../../../src/publisher/root/root-change.js';
import { planCollection, removeCollected } from '../../../../src/publisher/upkeep/collect-repository.js';
import type { Seeded } from '../../../kit/assert/seeded.js';
import type { TempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';
import { commit, newKey, noPassphrases, proposal, signedBy } from '../../../kit/repository/ceremony.js';
import {
  changeOptions,
  noReport,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';
import { appendKnown, digestTree, type ReleaseKind } from './known-releases.js';

export const bundleNames = ['edge', 'access'] as const;
export type BundleName = (typeof bundleNames)[number];

const lockWaitMs = 10_000;

interface Release {
  readonly serial: number;
  readonly kind: ReleaseKind;
  withdrawn: boolean;
}

export class SoakRepository {
  readonly sample: SampleRepository;
  readonly #dir: TempDir;
  readonly #known: string;
  readonly #random: Seeded;
  readonly #releases = new Map<BundleName, Release[]>();
  /** Serials that the current targets keys have listed: only these can be restored by a withdrawal. */
  readonly #signedSerials = new Map<BundleName, Set<number>>();
  #tokens = 0;
  #rotations = 0;

  constructor(dir: TempDir, known: string, random: Seeded) {
    this.#dir = dir;
    this.#known = known;
    this.#random = random;
    this.sample = sampleRepository(dir, { clock: systemClock });
  }

  /** @returns the head of the channel */
  head(bundle: BundleName): Release | undefined {
    return this.#of(bundle).findLast((one) => !one.withdrawn);
  }

  release(bundle: string, serial: number): Release | undefined {
    return this.#of(bundle as BundleName).find((one) => one.serial === serial);
  }

  async publish(bundle: BundleName, kind: ReleaseKind): Promise<number> {
    this.#tokens += 1;
    const token = `t${this.#tokens}`;
    const source = writeTree(this.#dir.join('sources', token), this.#files(bundle, kind, token));
    try {
      const { digest } = digestTree(source);
      appendKnown(this.#known, { type: 'release', bundle, digest, kind });
      const { release } = await publishBundle({
        source,
        repository: this.sample.directory,
        keys: { path: this.sample.keys, passphrases: noPassphrases },
        bundle,
        channel: 'stable',
        revision: token,
        limits: defaultArchiveLimits,
        clock: systemClock,
        durableFs: createDurableFs(),
        lockWaitMs,
        report: noReport,
      });
      this.#of(bundle).push({ serial: release.serial, kind, withdrawn: false });
      this.#vouchFor(bundle, release.serial);
      return release.serial;
    } finally {
      fs.rmSync(source, { recursive: true });
    }
  }

  /** Withdraws the head and bad releases below it, to the newest good release. @returns undefined when there is none */
  async withdraw(bundle: BundleName): Promise<{ from: number; to: number } | undefined> {
    const head = this.head(bundle);
    const standing = this.#of(bundle).filter((one) => !one.withdrawn);
    const vouched = this.#signedSerials.get(bundle);
    const to = standing
      .slice(-5, -1)
      .findLast((one) => one.kind === 'good' && vouched?.has(one.serial) === true);
    if (head === undefined || to === undefined) return undefined;
    const taken = standing.filter((one) => one.serial > to.serial);
    // Mark them before signing, because a host may follow at once.
    for (const one of taken) one.withdrawn = true;
    const request = { bundle, serials: taken.map((one) => one.serial), to: to.serial, reason: 'soak' };
    await withdrawRelease(request, { ...changeOptions(this.sample), lockWaitMs });
    this.#vouchFor(bundle, to.serial);
    return { from: head.serial, to: to.serial };
  }

  /** Publishes a new root: signed again, or with a new key for one role. @returns a description of the change */
  async rotate(): Promise<string> {
    this.#rotations += 1;
    const role = this.#random.pick(['none', 'timestamp', 'snapshot', 'targets'] as const);
    const change =
      role === 'none'
        ? noChange
        : { replace: [{ role, keys: [newKey(this.#dir, `${role}-r${this.#rotations}`)] }] };
    const signed = await signedBy(this.sample, proposal(this.sample, change), ['root-1.key', 'root-2.key']);
    await commit(this.sample, signed, { lockWaitMs });
    if (role === 'targets') this.#forgetOlderSerials();
    return role;
  }

  /** Deletes files that no host can need any more. @returns the number of files */
  async collect(): Promise<number> {
    const options = { repository: this.sample.directory, keep: 12, graceMs: 60_000, clock: systemClock };
    const planned = planCollection(options);
    const removed = await removeCollected(planned, { ...options, durableFs: createDurableFs(), lockWaitMs });
    return removed.length;
  }

  #vouchFor(bundle: BundleName, serial: number): void {
    this.#signedSerials.set(bundle, (this.#signedSerials.get(bundle) ?? new Set()).add(serial));
  }

  /** After a rotation the new keys have signed only the heads. */
  #forgetOlderSerials(): void {
    this.#signedSerials.clear();
    for (const bundle of this.#releases.keys()) {
      const head = this.head(bundle);
      if (head !== undefined) this.#vouchFor(bundle, head.serial);
    }
  }

  #of(bundle: BundleName): Release[] {
    const known = this.#releases.get(bundle) ?? [];
    this.#releases.set(bundle, known);
    return known;
  }

  #files(bundle: BundleName, kind: ReleaseKind, token: string): Record<string, string> {
    const random = this.#random;
    const files: Record<string, string> = {};
    const add = (path: string, bytes: number): void => {
      files[path] = fill(`${bundle} ${token} ${path}`, bytes);
    };
    if (bundle === 'edge') {
      const count = 80 + random.int(80);
      for (let index = 0; index < count; index++)
        add(`zones/${index % 9}/zone-${index}.txt`, 100 + random.int(900));
      add('large.txt', 300_000 + random.int(900_000));
      if (kind === 'refused') add('refuse', 50);
    } else {
      const count = 10 + random.int(20);
      for (let index = 0; index < count; index++) add(`rule-${index}.yaml`, 200 + random.int(2000));
      if (kind === 'refused') files['broken.yaml'] = `${bundle} ${token} broken.yaml\n: [\n`;
      if (kind === 'nacked') add('nack', 50);
    }
    return files;
  }
}

/** @returns a YAML document that begins with `head` and compresses to about half of its size */
function fill(head: string, bytes: number): string {
  const lines = [head];
  for (let length = head.length; length < bytes; length += 67) {
    lines.push(`# ${createHash('sha256').update(`${head} ${length}`).digest('hex')}`);
  }
  return `${lines.join('\n')}\n`;
}

/** Wraps a directory as a TempDir for the test kit; the soak removes it itself. */
export function soakDirectory(path: string): TempDir {
  fs.mkdirSync(path, { recursive: true });
  return { path, join: (...names) => join(path, ...names), [Symbol.dispose]: () => undefined };
}
