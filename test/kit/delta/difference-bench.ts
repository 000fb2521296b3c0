// A host that gets its updates by difference: releases that are large enough for it, and what came of an update. Owns files and
// looks; what is bent of them is the tests'.
import assert from 'node:assert/strict';
import { createCipheriv, createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { type TestHost, type TestHostOptions, testHost } from '../host/test-host.js';

/** Nothing that shrinks. */
export function noise(seed: string, bytes: number): string {
  const key = createHash('sha256').update(seed).digest().subarray(0, 16);
  const stream = createCipheriv('aes-128-ctr', key, Buffer.alloc(16));
  return stream.update(Buffer.alloc(bytes)).toString('base64').slice(0, bytes);
}

/** One line of a list and one small file are another one in each version; everything else stays. */
export function filesOf(version: number): Record<string, string> {
  const lines = Array.from({ length: 400 }, (_, line) => `${line} ${noise(`line ${line}`, 40)}`);
  lines[200] = `200 version ${version}`;
  const rules = Array.from({ length: 8 }, (_, index) => [`rules/${index}`, noise(`rule ${index}`, 700)]);
  return {
    ...Object.fromEntries(rules),
    'policy.yaml': `version: ${version}\n`,
    'list.rpz': lines.join('\n'),
    '+bin/tool': '#!/bin/sh\n',
    empty: '',
  };
}

export interface DifferenceBench extends Disposable {
  readonly test: TestHost;
  /** Publishes a version under its own serial. */
  publish(version: number, files?: Record<string, string>): Promise<void>;
  /** Publishes, pulls, and asks for an activation. */
  update(version: number): Promise<CycleResult>;
  /** What was fetched of targets since the last question: `archive` or `delta`, in order. */
  fetched(): string[];
  /** A path of the active tree, of its kept release. */
  tree(path?: string): string;
  kept(name?: string): string;
}

/** Release 1 is active. */
export async function differenceBench(options: TestHostOptions = {}): Promise<DifferenceBench> {
  const test = testHost({ deltas: {}, ...options });
  const { paths } = test.host;
  const treePath = (): string => fs.realpathSync(join(paths.current, 'access'));
  const bench: DifferenceBench = {
    test,
    publish: async (version, files = filesOf(version)) => {
      await test.publish('access', files, { serial: version });
    },
    update: async (version) => {
      await bench.publish(version);
      const result = await test.pull();
      assert.deepEqual([result.outcome, result.problems], ['activated', []]);
      return result;
    },
    fetched: () =>
      test.repository.takeRequests().flatMap((request) => {
        if (request.includes('.delta')) return ['delta'];
        return request.includes('.tar.br') ? ['archive'] : [];
      }),
    tree: (path = '') => join(treePath(), path),
    kept: (name = '') => {
      const release = /([^/]+)\.\d+$/.exec(treePath())?.[1] ?? '';
      return join(paths.archives, 'access', release, name);
    },
    [Symbol.dispose]: () => test[Symbol.dispose](),
  };
  await bench.update(1);
  bench.fetched();
  return bench;
}

/** @returns what a tree holds: path, type, mode, time and content of each */
export function treeOf(root: string): string[] {
  return fs
    .readdirSync(root, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((path) => {
      const stats = fs.lstatSync(join(root, path));
      const text = stats.isFile() ? fs.readFileSync(join(root, path), 'latin1') : '';
      const time = stats.isFile() ? stats.mtimeMs : 0;
      return [path, stats.mode.toString(8), stats.nlink > 1 && stats.isFile(), stats.gid, time, text].join(
        ' ',
      );
    });
}

/** @returns inode numbers of all files below */
export function inodesOf(root: string): number[] {
  return fs
    .readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((path) => fs.lstatSync(join(root, path)))
    .filter((stats) => stats.isFile())
    .map(({ ino }) => ino);
}

export const warningsOf = ({ warnings }: CycleResult): string[] => warnings.map(({ code }) => code);
