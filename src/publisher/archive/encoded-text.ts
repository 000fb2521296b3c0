// Reads text that is encoded in base64 or compressed by gzip, one inside the other too, so that secrets in it are found. Pure;
// work is bounded: each byte is decoded at most twice for each level, and gzip gives up to a fixed number of bytes.
import { constants, gunzipSync } from 'node:zlib';

export interface EncodedText {
  /** latin1. */
  readonly text: string;
  /** Position of the encoded form in the outer text. */
  readonly index: number;
  /** As `in base64`. */
  readonly encoding: string;
}

/** The bound for the output of one gzip file or of one base64 value. */
const maxInflatedBytes = 4_194_304;
/** The number of first bytes that identify a private key in DER or a packet of OpenPGP. */
export const keyBeginBytes = 58;
/** The number of attempts to decompress the input; each halves it while the output exceeds the bound. */
const maxHalvings = 10;

/** Shorter values contain no secret with a known form. The `n` of an escaped line break is not part of a value. */
const base64Run = /(?<![A-Za-z0-9+/])(?:(?<=\\)[nr])?([A-Za-z0-9+/]{20,}={0,2})/g;
const lineBreak = /^\r?\n[ \t]{0,40}$/;
/** Spaces, the quotes and escapes of string literals, and the prefixes of comment lines. */
const anySeparator = /^[\s\\nr"'+,#>|*/]{1,60}$/;
const maxSeparatorCharacters = 60;

/**
 * Decodes the values one after the other, because all decoded values of a text together may need a thousand times its
 * memory.
 * @param isCut the text begins in the middle of a line, so that the first value may begin at any of four positions of a
 *   group
 * @returns the decoded base64 values of a text. Lines of one wrapped value are one text. Values that are separated only by
 *   quotes, spaces or comment prefixes are one more text, because they may be lines of one value
 */
export function* decodeBase64In(text: string, isCut: boolean): Generator<EncodedText> {
  for (const { runs, index } of findRuns(text, isCut)) yield* decodeRuns(runs.join(''), index);
}

interface Base64Value {
  readonly index: number;
  /** The lines of the value, without the line breaks between them. */
  readonly runs: readonly string[];
}

/**
 * A value that the next line may continue. The lines are joined later, because a value with a hundred thousand lines would
 * otherwise be copied for each of them.
 */
interface OpenValue extends Base64Value {
  readonly runs: string[];
  characters: number;
  end: number;
}

function findRuns(text: string, isCut: boolean): readonly Base64Value[] {
  const found: Base64Value[] = [];
  const wrapped = new Joined(text, lineBreak);
  const separated = new Joined(text, anySeparator);
  for (const { 0: whole, 1: run = '', index: from } of text.matchAll(base64Run)) {
    const index = from + whole.length - run.length;
    if (isCut && index === 0) {
      // A value at the start of a cut text has no known beginning that a next line could continue.
      for (const start of [0, 1, 2, 3]) found.push({ index, runs: [run.slice(start)] });
      continue;
    }
    wrapped.add(run, index);
    separated.add(run, index);
  }
  const runsAt = new Map(wrapped.values.map(({ index, runs }) => [index, runs.length]));
  const others = separated.values.filter(({ index, runs }) => runsAt.get(index) !== runs.length);
  return [...found, ...wrapped.values, ...others];
}

/** Collects values that continue over several runs, if only this separator is between the runs. */
class Joined {
  readonly values: OpenValue[] = [];
  readonly #text: string;
  readonly #separator: RegExp;

  constructor(text: string, separator: RegExp) {
    this.#text = text;
    this.#separator = separator;
  }

  add(run: string, index: number): void {
    const end = index + run.length;
    const last = this.values.at(-1);
    if (last !== undefined && this.#isContinued(last, index)) {
      last.runs.push(run);
      last.characters += run.length;
      last.end = end;
    } else this.values.push({ index, runs: [run], characters: run.length, end });
  }

  #isContinued({ runs, characters, end }: OpenValue, index: number): boolean {
    const isWhole = characters % 4 === 0 && runs.at(-1)?.endsWith('=') === false;
    const isNear = index - end <= maxSeparatorCharacters;
    return isWhole && isNear && this.#separator.test(this.#text.slice(end, index));
  }
}

function decodeRuns(runs: string, index: number): readonly EncodedText[] {
  const bytes = Buffer.from(runs, 'base64');
  const inflated = inflate(bytes);
  const text = (decoderWithoutMark(bytes) ?? decodeBytes)(bytes);
  return [
    { text, index, encoding: 'in base64' },
    ...(inflated === undefined ? [] : [{ text: inflated, index, encoding: 'in gzip and base64' }]),
  ];
}

/**
 * @returns the beginning of a gzip file as text, also of a cut file; only the first bytes of a program, an image or a key
 *   in DER; undefined for anything else
 */
export function inflate(bytes: Buffer): string | undefined {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return undefined;
  for (let halvings = 0; halvings < maxHalvings; halvings += 1) {
    const input = bytes.subarray(0, Math.ceil(bytes.length / 2 ** halvings));
    const inflated = tryInflate(input);
    if (inflated === 'too-large') continue;
    return inflated && textOf(inflated);
  }
  return undefined;
}

function tryInflate(input: Buffer): Buffer | 'too-large' | undefined {
  try {
    return gunzipSync(input, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: maxInflatedBytes });
  } catch (error) {
    return (error as { readonly code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE' ? 'too-large' : undefined;
  }
}

/** A NUL among these first bytes shows a program or an image, which may contain `BEGIN PRIVATE KEY` as a constant. */
const binaryBytes = 8192;
const tarMagicAt = 257;

/** A tar file counts as text although it has NULs in its headers. */
function textOf(bytes: Buffer): string {
  const isTar = bytes.toString('latin1', tarMagicAt, tarMagicAt + 5) === 'ustar';
  const decode = isTar ? decodeBytes : (decoderWithoutMark(bytes) ?? decoderOf(bytes));
  return decode === undefined ? bytes.toString('latin1', 0, keyBeginBytes) : decode(bytes);
}

/**
 * @returns one character for each byte, so that positions are those of the bytes, in any encoding that contains ASCII
 */
export function decodeBytes(bytes: Buffer): string {
  return bytes.toString('latin1');
}

/** @returns undefined for a binary file. Text of Windows is UTF-16, in which every second byte is often a NUL */
export function decoderOf(bytes: Buffer): ((bytes: Buffer) => string) | undefined {
  return decoderOfMark(bytes) ?? (bytes.subarray(0, binaryBytes).includes(0) ? undefined : decodeBytes);
}

function decoderOfMark(bytes: Buffer): ((bytes: Buffer) => string) | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return (chunk) => chunk.toString('utf16le');
  if (bytes[0] === 0xfe && bytes[1] === 0xff)
    return (chunk) =>
      Buffer.from(chunk.subarray(0, chunk.length & ~1))
        .swap16()
        .toString('utf16le');
  return undefined;
}

/** PowerShell writes UTF-16 without a byte order mark. @returns undefined for anything but UTF-16 */
function decoderWithoutMark(bytes: Buffer): ((bytes: Buffer) => string) | undefined {
  const isUtf16 = bytes[0] !== 0 && [1, 3, 5, 7].every((at) => bytes[at] === 0);
  return isUtf16 ? (chunk) => chunk.toString('utf16le') : decoderOfMark(bytes);
}
