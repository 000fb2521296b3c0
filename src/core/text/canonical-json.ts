// OLPC canonical JSON, the bytes that TUF signatures cover (docs/adr/0001). A value without a canonical form (a float, a lone
// surrogate, undefined) is an error. Pure.
import { WritError } from '../errors.js';

const maxDepth = 64;

/**
 * @param value parsed JSON: objects, arrays, strings, safe integers, booleans, null
 * @returns its canonical text: keys sorted by code point, no white space, only `\` and `"` escaped
 * @throws WritError METADATA_MALFORMED for a value without a canonical form
 */
export function canonicalJson(value: unknown): string {
  return encode(value, 0);
}

/** @returns the canonical text as UTF-8 bytes, for signatures and digests */
export function canonicalBytes(value: unknown): Buffer {
  return Buffer.from(canonicalJson(value), 'utf8');
}

function encode(value: unknown, depth: number): string {
  if (depth > maxDepth) throw malformed('nested too deeply');
  if (value === null) return 'null';
  switch (typeof value) {
    case 'boolean':
      return value ? 'true' : 'false';
    case 'number':
      return encodeNumber(value);
    case 'string':
      return encodeString(value);
    case 'object':
      return encodeObject(value, depth);
    default:
      throw malformed(`a ${typeof value}`);
  }
}

function encodeObject(value: object, depth: number): string {
  if (Array.isArray(value)) return `[${value.map((item) => encode(item, depth + 1)).join(',')}]`;
  const entries = Object.entries(value).sort(([a], [b]) => compareCodePoints(a, b));
  return `{${entries.map(([key, item]) => `${encodeString(key)}:${encode(item, depth + 1)}`).join(',')}}`;
}

function encodeNumber(value: number): string {
  // -0 would be printed as 0, so that two values had one canonical form.
  if (!Number.isSafeInteger(value) || Object.is(value, -0)) throw malformed(`the number ${value}`);
  return String(value);
}

function encodeString(value: string): string {
  // A lone surrogate becomes U+FFFD in UTF-8, so that two different strings would have one signature.
  if (!isWellFormed(value)) throw malformed('a string with a lone surrogate');
  return `"${value.replace(/["\\]/g, '\\$&')}"`;
}

/** Compares by Unicode code point. The default order of JavaScript is by UTF-16 unit and differs above U+FFFF. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    const difference = codePointRank(a.charCodeAt(at)) - codePointRank(b.charCodeAt(at));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Surrogates represent code points above all other units, although U+E000 to U+FFFF have greater numbers. */
function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

function malformed(what: string): WritError {
  return new WritError('METADATA_MALFORMED', `canonical JSON has no form for ${what}`);
}

const loneSurrogate = /\p{Surrogate}/u;

/** As String.prototype.isWellFormed, which is not in the ES2023 types. */
export function isWellFormed(value: string): boolean {
  return !loneSurrogate.test(value);
}
