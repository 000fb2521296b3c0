// Reads text that is encoded in base64 or compressed by gzip, one inside the other too, so that secrets in it are found. Pure;
// work is bounded: each byte is decoded once for each level, and gzip gives up to a fixed number of bytes.
import { constants, gunzipSync } from 'node:zlib';

export interface EncodedText {
  /** latin1. */
  readonly text: string;
  /** Position of the encoded form in the outer text. */
  readonly index: number;
  /** As `in base64`. */
  readonly encoding: string;
}

/** Of the output of one gzip file or of one base64 value. */
const maxInflatedBytes = 4_194_304;
/** Input of gzip that is tried at first; it is halved while the output is above the bound. */
const maxHalvings = 10;

/** Shorter values contain no secret with a known form. */
const base64Run = /(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{20,}={0,2}/g;
const lineBreak = /^\r?\n[ \t]{0,40}$/;
const maxLineBreakCharacters = 42;

/**
 * Decodes one value after the other, because all decoded values of a text together may take a thousand times its memory.
 * @param isCut the text begins in the middle of a line, so that the first value may begin at any of four positions of a group
 * @returns the base64 values of a text, decoded; lines of one wrapped value are one text
 */
export function* decodeBase64In(text: string, isCut: boolean): Generator<EncodedText> {
  for (const { runs, index } of findRuns(text, isCut)) yield* decodeRuns(runs.join(''), index);
}

interface Base64Value {
  readonly index: number;
  /** Without the line breaks between them. */
  readonly runs: readonly string[];
}

/** A value that a next line may continue. Joined text here would be copied for each line of a value with a hundred thousand lines. */
interface OpenValue extends Base64Value {
  readonly runs: string[];
  characters: number;
  end: number;
}

function findRuns(text: string, isCut: boolean): readonly Base64Value[] {
  const found: Base64Value[] = [];
  let last: OpenValue | undefined;
  for (const { 0: run, index } of text.matchAll(base64Run)) {
    const end = index + run.length;
    if (isCut && index === 0) {
      // A value that begins with the text has no begin that a next line could continue.
      for (const start of [0, 1, 2, 3]) found.push({ index, runs: [run.slice(start)] });
      continue;
    }
    if (last !== undefined && isContinuedBy(last, text.slice(last.end, index))) {
      last.runs.push(run);
      last.characters += run.length;
      last.end = end;
      continue;
    }
    last = { index, runs: [run], characters: run.length, end };
    found.push(last);
  }
  return found;
}

/** @param between the text from the end of the value to the next run */
function isContinuedBy({ runs, characters }: OpenValue, between: string): boolean {
  const isWhole = characters % 4 === 0 && runs.at(-1)?.endsWith('=') === false;
  return isWhole && between.length <= maxLineBreakCharacters && lineBreak.test(between);
}

function decodeRuns(runs: string, index: number): readonly EncodedText[] {
  const bytes = Buffer.from(runs, 'base64');
  const inflated = inflate(bytes);
  const text = bytes.toString('latin1');
  return [
    { text, index, encoding: 'in base64' },
    ...(inflated === undefined ? [] : [{ text: inflated, index, encoding: 'in gzip and base64' }]),
  ];
}

/** @returns the begin of a gzip file as text, also of a file that is cut; undefined for anything else, and for a program or an image */
export function inflate(bytes: Buffer): string | undefined {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return undefined;
  for (let halvings = 0; halvings < maxHalvings; halvings += 1) {
    const input = bytes.subarray(0, Math.ceil(bytes.length / 2 ** halvings));
    const inflated = tryInflate(input);
    if (inflated === 'too-large') continue;
    return inflated === undefined || isBinary(inflated) ? undefined : inflated.toString('latin1');
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

const firstBytes = 8192;
const tarMagicAt = 257;

/** A tar file has NULs in its headers, and text between them. */
function isBinary(bytes: Buffer): boolean {
  const isTar = bytes.toString('latin1', tarMagicAt, tarMagicAt + 5) === 'ustar';
  return !isTar && bytes.subarray(0, firstBytes).includes(0);
}
