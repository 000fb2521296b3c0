// Reads the recordings of one scenario as normalised texts, in order. Owns the format of a recording; does not compare.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createNormaliser, type Normaliser, type Surroundings } from './normalise.js';
import { renderTree } from './render-tree.js';

/** The recording of one command, request or directory. */
export interface Recording {
  readonly title: string;
  readonly text: string;
}

/** @param records the directory with the recordings of the scenario */
export function readRecordings(records: string, surroundings: Surroundings): readonly Recording[] {
  const normalise = createNormaliser(surroundings);
  return readdirSync(records)
    .filter((name) => name.endsWith('.title'))
    .sort()
    .map((name) => recordingOf(join(records, name.slice(0, -'.title'.length)), normalise));
}

function recordingOf(stem: string, normalise: Normaliser): Recording {
  const parts = ['stdout', 'stderr', 'exit']
    .filter((part) => existsSync(`${stem}.${part}`))
    .map((part) => ({ part, text: readFileSync(`${stem}.${part}`, 'utf8') }))
    .filter(({ text }) => text !== '')
    .map(({ part, text }) => `[${part}]\n${text}${text.endsWith('\n') ? '' : '\n[no newline]\n'}`);
  const tree = existsSync(`${stem}.tree`) ? [renderTree(`${stem}.tree`)] : [];
  const title = readFileSync(`${stem}.title`, 'utf8').trimEnd();
  return {
    title: normalise(title),
    text: normalise([...parts, ...tree].join('')),
  };
}

/** Writes all recordings to one readable file. */
export function writeRecordings(directory: string, name: string, recordings: readonly Recording[]): void {
  mkdirSync(directory, { recursive: true });
  const text = recordings.map((one) => `=== ${one.title}\n${one.text}`).join('\n');
  writeFileSync(join(directory, `${name}.txt`), text);
}
