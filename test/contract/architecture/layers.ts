// The folders of the sources in the order in which they may import each other, and the imports against it. Owns the rule;
// the architecture tests apply it to the sources.
import assert from 'node:assert/strict';
import type { SourceFile } from '../../kit/sources/source-files.js';

/** Asserts that there is no violation. Fails with one line for each one, and the reason of the rule. */
export function hold(violations: readonly string[], because: string): void {
  assert.deepEqual(violations, [], `\n${violations.join('\n')}\nbecause: ${because}\n`);
}

export function layerOf(path: string): string {
  return path.split('/')[0] ?? '';
}

/** The other layers that a layer may import: cli -> {agent, publisher, server, fleet} -> {trust, workers} -> platform -> core. */
export const below: Readonly<Record<string, readonly string[]>> = {
  core: [],
  sdk: ['core'],
  platform: ['core'],
  trust: ['platform', 'core'],
  workers: ['platform', 'core'],
  agent: ['trust', 'workers', 'platform', 'core'],
  publisher: ['trust', 'workers', 'platform', 'core'],
  server: ['trust', 'workers', 'platform', 'core'],
  fleet: ['trust', 'platform', 'core'],
  cli: ['agent', 'publisher', 'server', 'fleet', 'trust', 'workers', 'platform', 'core'],
};

/** Single files that a layer may import against the rule above. */
const exceptions: readonly (readonly [from: string, to: string, because: string])[] = [
  [
    'server',
    'publisher/signing/online-signing.ts',
    'the server re-signs with the two online keys and reads no other',
  ],
];

/** @returns the imports against the order of the folders, one line each */
export function againstDirection(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, imports }) => {
    const layer = layerOf(path);
    const allowed = [layer, ...(below[layer] ?? [])];
    return imports
      .filter(({ file }) => file !== undefined && !allowed.includes(layerOf(file)))
      .filter(({ file }) => !exceptions.some(([from, to]) => from === layer && to === file))
      .map(({ file }) => `${path} imports ${file}`);
  });
}
