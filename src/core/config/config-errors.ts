// Mistakes in a configuration file: their type, their texts for errors of the schema, and the error that contains them all.
// Never reads a file.
import type { ErrorObject } from 'ajv';
import { WritError } from '../errors.js';
import { given } from '../given.js';
import type { Schema } from './config-keys.js';
import type { ConfigCode, ConfigPath, Finding } from './findings.js';

/** A mistake at a place in the file. */
export interface ConfigMistake {
  readonly code: ConfigCode;
  /** Line and column start at 1. */
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

/** @returns one error for all mistakes; CONFIG_INVALID if they have different codes */
export function configError(file: string, mistakes: readonly ConfigMistake[]): WritError {
  const codes = new Set(mistakes.map((mistake) => mistake.code));
  const [only = 'CONFIG_INVALID', ...others] = codes;
  const code = others.length === 0 ? only : 'CONFIG_INVALID';
  const count = mistakes.length === 1 ? '1 mistake' : `${mistakes.length} mistakes`;
  const lines = mistakes.map((mistake) => `\n${mistakeLine(mistake)}`).join('');
  return new WritError(code, `${file} has ${count}:${lines}`, { facts: { file, mistakes } });
}

/** @returns the path as a JSON Pointer (RFC 6901); '' for the data itself */
export function pointerOf(path: ConfigPath): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function pathOf(pointer: string): string[] {
  if (pointer === '') return [];
  const parts = pointer.slice(1).split('/');
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/**
 * @param error of ajv with the option `verbose`, so that it has the schema and the value
 * @param base path of the value that the schema was applied to
 * @returns undefined for an error that ajv reports twice
 */
export function schemaFinding(error: ErrorObject, base: ConfigPath): Finding | undefined {
  const path = [...base, ...pathOf(error.instancePath)];
  const schema = error.parentSchema as Schema;
  switch (error.keyword) {
    case 'additionalProperties': {
      const key = String(error.params['additionalProperty']);
      const known = Object.keys(schema.properties ?? {});
      const suggestion = nearestName(key, known);
      return {
        path: [...path, key],
        at: 'key',
        text: unknownNameText('key', key, known),
        ...given({ suggestion }),
      };
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
      return { path, at: 'value', text: unknownNameText('value', String(error.data), known) };
    }
    default:
      // ajv also reports the pattern of an invalid property name separately.
      if (error.propertyName !== undefined) return undefined;
      return { path, at: 'value', text: mustBeText(error, schema) };
  }
}

function mustBeText(error: ErrorObject, schema: Schema): string {
  if (error.data === null && error.instancePath === '' && schema.properties?.['repository'] !== undefined)
    return 'there is nothing in it but comments: take the marks (#) away, and name `repository` and `bundles`';
  const wanted = schema.description ?? error.message ?? 'something else';
  return `must be ${wanted.replace(/^must be /, '')}; it is ${describeValue(error.data)}`;
}

function describeValue(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'object') return 'a group of keys';
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/**
 * @param what the kind of name, as `driver`
 * @param known all valid names
 * @returns `unknown <what> "x"`, with the nearest known name, or with all known names if there are at most 12
 */
export function unknownNameText(what: string, name: string, known: readonly string[]): string {
  const near = nearestName(name, known);
  if (near !== undefined) return `unknown ${what} "${name}"; did you mean "${near}"?`;
  const all = known.length > 0 && known.length <= 12 ? `; known: ${known.join(', ')}` : '';
  return `unknown ${what} "${name.slice(0, 80)}"${all}`;
}

/** @returns the known name with the least edit distance, at most a third of its letters; undefined if none is near */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = editDistance(name.slice(0, 80).toLowerCase(), candidate.toLowerCase());
    const near = distance <= Math.max(1, Math.floor(candidate.length / 3));
    if (near && (best === undefined || distance < best.distance)) best = { name: candidate, distance };
  }
  return best?.name;
}

/** Levenshtein distance, for two short names. */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const here = [row];
    for (let column = 1; column <= b.length; column++) {
      const change = a[row - 1] === b[column - 1] ? 0 : 1;
      const costs = [
        (above[column - 1] ?? 0) + change,
        (above[column] ?? 0) + 1,
        (here[column - 1] ?? 0) + 1,
      ];
      here.push(Math.min(...costs));
    }
    above = here;
  }
  return above[b.length] ?? 0;
}
