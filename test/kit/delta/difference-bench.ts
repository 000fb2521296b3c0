// A host that updates by deltas: releases that are large enough for it, and the results of an update.
import assert from 'node:assert/strict';
import { createCipheriv, createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { type TestHost, type TestHostOptions, testHost } from '../host/test-host.js';

/** @returns incompressible text, equal for the same seed */
export function noise(seed: string, bytes: number): string {
  const key = createHash('sha256').update(seed).digest().subarray(0, 16);
  const stream = createCipheriv('aes-128-ctr', key, Buffer.alloc(16));
  return stream.update(Buffer.alloc(bytes)).toString('base64').slice(0, bytes);
}

/** @returns files of which one line of a list and one small file change in each version */
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
  /** Publishes a version with its number as the serial. */
  publish(version: number, files?: Record<string, string>): Promise<void>;
  /** Publishes and pulls, and asserts an activation. */
  update(version: number): Promise<CycleResult>;
  /** @returns `archive` or `delta` for each download since the last call, in order */
  fetched(): string[];
  /** @returns a path in the active tree or in its retained release */
  tree(path?: string): string;
  kept(name?: string): string;
}

/** @returns a host with release 1 active */
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

/** @returns path, type, mode, time and content of each entry of a tree */
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
