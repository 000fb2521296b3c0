// The changes that a test must notice: one file for each module of src, so that two modules that change at the same time change
// no common file. Reads and writes them; scripts/mutate.js makes the changes.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = 'test/mutations';

/**
 * @typedef {object} Mutation
 * @property {string} id
 * @property {string} file the source that is changed, below the project
 * @property {string} before a text that the source contains once
 * @property {string} after what takes its place
 * @property {string} test the file with the test that fails then
 * @property {string} name of the test, or a part of it
 * @property {string} [verify] why only `npm run verify` runs the test
 */

/** @param {string} source as `src/agent/notify/confirm-by-probe.ts` @returns {string} as `test/mutations/agent-notify.json` */
export function mutationsPathOf(source) {
  const [, ...folders] = source.split('/').slice(0, -1);
  return `${folder}/${folders.slice(0, 2).join('-') || 'src'}.json`;
}

/** @param {string} root of the project @returns {Mutation[]} in the order of their files */
export function readMutations(root) {
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.json'))
    .sort()
    .flatMap((name) => JSON.parse(readFileSync(join(root, folder, name), 'utf8')));
}

/** Writes each mutation into the file of its module, in the order given; a file that gets none is removed. */
export function writeMutations(root, mutations) {
  rmSync(join(root, folder), { recursive: true, force: true });
  mkdirSync(join(root, folder));
  for (const [path, own] of groupByPath(mutations))
    writeFileSync(join(root, path), `${JSON.stringify(own, undefined, 2)}\n`);
}

function groupByPath(mutations) {
  const groups = new Map();
  for (const one of mutations) {
    const path = mutationsPathOf(one.file);
    groups.set(path, [...(groups.get(path) ?? []), one]);
  }
  return groups;
}
