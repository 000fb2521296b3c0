// Mistakes in a configuration file: what they are, how a finding of the schema becomes one in plain words, and
// the error that names them all. Never reads a file and never stops at the first mistake.
import type { ErrorObject } from 'ajv';
import { WritError } from '../errors.js';
import { given } from '../given.js';
import type { Schema } from './config-keys.js';
import type { ConfigCode, ConfigPath, Finding } from './findings.js';

/** A mistake at a place in the file. */
export interface ConfigMistake {
  readonly code: ConfigCode;
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
  /** JSON pointer, as `/bundles/0/name`; empty for the whole file. */
  readonly pointer: string;
  readonly text: string;
}

/** @returns the mistake as one line, as `3:5 /bundles/0/name: must be ...` */
export function mistakeLine(mistake: ConfigMistake): string {
  return `${mistake.line}:${mistake.column} ${mistake.pointer === '' ? '' : `${mistake.pointer}: `}${mistake.text}`;
}

/** @returns one error for all mistakes of a file; its code is the most general one among them */
export function configError(file: string, mistakes: readonly ConfigMistake[]): WritError {
  const codes = new Set(mistakes.map((mistake) => mistake.code));
  const [only = 'CONFIG_INVALID', ...others] = codes;
  const code = others.length === 0 ? only : 'CONFIG_INVALID';
  const count = mistakes.length === 1 ? '1 mistake' : `${mistakes.length} mistakes`;
  const lines = mistakes.map((mistake) => `\n${mistakeLine(mistake)}`).join('');
  return new WritError(code, `${file} has ${count}:${lines}`, { facts: { file, mistakes } });
}

export function pointerOf(path: ConfigPath): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function pathOf(pointer: string): string[] {
  if (pointer === '') return [];
  const parts = pointer.slice(1).split('/');
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** @param error of ajv with `verbose`, so that it carries the schema and the value */
export function findingOf(error: ErrorObject, base: ConfigPath): Finding | undefined {
  const path = [...base, ...pathOf(error.instancePath)];
  const schema = error.parentSchema as Schema;
  switch (error.keyword) {
    case 'additionalProperties': {
      const key = String(error.params['additionalProperty']);
      const known = Object.keys(schema.properties ?? {});
      const meant = nearest(key, known);
      return { path: [...path, key], at: 'key', text: unknownText('key', key, known), ...given({ meant }) };
    }
    case 'required':
      return { path, at: 'key', text: `the key "${error.params['missingProperty']}" is missing` };
    case 'propertyNames':
      return {
        path: [...path, String(error.params['propertyName'])],
        at: 'key',
        text: `must be ${schema.propertyNames?.description ?? 'a name as a-z0-9'}`,
      };
    case 'enum': {
      const known = (schema.enum ?? []).filter((one) => schema.retired?.includes(one) !== true);
      return { path, at: 'value', text: unknownText('value', String(error.data), known) };
    }
    default:
      // ajv reports the pattern of a wrong property name once more, by its own.
      if (error.propertyName !== undefined) return undefined;
      return { path, at: 'value', text: mustBe(error, schema) };
  }
}

function mustBe(error: ErrorObject, schema: Schema): string {
  if (error.data === null && error.instancePath === '' && schema.properties?.['repository'] !== undefined)
    return 'there is nothing in it but comments: take the marks (#) away, and name `repository` and `bundles`';
  const wanted = schema.description ?? error.message ?? 'something else';
  return `must be ${wanted.replace(/^must be /, '')}; it is ${show(error.data)}`;
}

function show(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'object') return 'a group of keys';
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** @returns `unknown <what> "x"`, with the nearest known word where one is near, else with all of a few */
export function unknownText(what: string, word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  if (near !== undefined) return `unknown ${what} "${word}"; did you mean "${near}"?`;
  const all = known.length > 0 && known.length <= 12 ? `; known: ${known.join(', ')}` : '';
  return `unknown ${what} "${word.slice(0, 80)}"${all}`;
}

/** @returns the known word that is at most a third of the letters away */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: { readonly word: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = editDistance(word.slice(0, 80).toLowerCase(), candidate.toLowerCase());
    const near = distance <= Math.max(1, Math.floor(candidate.length / 3));
    if (near && (best === undefined || distance < best.distance)) best = { word: candidate, distance };
  }
  return best?.word;
}

/** Levenshtein's distance; both words are short. */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const here = [row];
    for (let column = 1; column <= b.length; column++) {
      const change = a[row - 1] === b[column - 1] ? 0 : 1;
      const ways = [(above[column - 1] ?? 0) + change, (above[column] ?? 0) + 1, (here[column - 1] ?? 0) + 1];
      here.push(Math.min(...ways));
    }
    above = here;
  }
  return above[b.length] ?? 0;
}
