// Parses a 512-byte header of a POSIX tar and the records of a PAX header exactly as specified. Files have been smuggled past checks
// where two tar readers interpreted a field differently. So a field that our publisher would not write is an error, and is never
// guessed or corrected. Pure.
import { WritError } from '../errors.js';
import { given } from '../given.js';

export const blockBytes = 512;

export interface TarHeader {
  /** `pax`: a PAX header for the next file. */
  readonly type: 'file' | 'pax';
  /** Path bytes of the header, with the prefix; not checked here. */
  readonly path: Buffer;
  readonly sizeBytes: number;
  readonly mode: number;
}

/** Values of a PAX header that replace those of the next header. */
export interface PaxRecords {
  readonly path?: Buffer;
  readonly sizeBytes?: number;
}

const fields = {
  name: [0, 100],
  mode: [100, 8],
  size: [124, 12],
  checksum: [148, 8],
  type: [156, 1],
  link: [157, 100],
  magic: [257, 8],
  prefix: [345, 155],
  end: [500, 12],
} as const;

const typeNames: Readonly<Record<string, string>> = {
  '1': 'a hard link',
  '2': 'a symbolic link',
  '3': 'a character device',
  '4': 'a block device',
  '5': 'a directory',
  '6': 'a FIFO',
  '7': 'a contiguous file',
  g: 'a global PAX header',
  K: 'a GNU long link name',
  L: 'a GNU long name',
  S: 'a GNU sparse file',
};

/**
 * Parses one header of the POSIX ustar format. Does not check the path or sizes against limits.
 * @param block exactly 512 bytes that are not all zero
 * @returns `type` is `file` for a regular file and `pax` for a PAX header of the next file. `path` is prefix, slash and name, as
 *   bytes.
 * @throws WritError ARCHIVE_MALFORMED for a wrong checksum, another format (such as GNU tar), an invalid number, or bytes after
 *   the end of a field
 * @throws WritError ENTRY_REFUSED for any other type, such as a symbolic link or directory, and for an entry with a link target
 */
export function readTarHeader(block: Buffer): TarHeader {
  if (readOctal(block, 'checksum') !== checksumOf(block)) throw malformed('a header has a wrong checksum');
  // The magic of GNU tar has other version bytes, and its later fields have another meaning.
  if (field(block, 'magic').toString('latin1') !== 'ustar\u000000')
    throw malformed('a header is not POSIX ustar');
  const type = readType(block);
  if (!isZero(field(block, 'link'))) throw refused('an entry names a link target');
  if (!isZero(field(block, 'end'))) throw malformed('a header has bytes after its last field');
  const name = readText(block, 'name');
  const prefix = readText(block, 'prefix');
  return {
    type,
    path: prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from('/'), name]),
    sizeBytes: readOctal(block, 'size'),
    mode: readOctal(block, 'mode'),
  };
}

function readType(block: Buffer): 'file' | 'pax' {
  const type = field(block, 'type').toString('latin1');
  if (type === '0' || type === '\0') return 'file';
  if (type === 'x') return 'pax';
  const name = typeNames[type] ?? `of unknown type ${JSON.stringify(type)}`;
  throw refused(`an entry is ${name}, not a regular file`, { type });
}

function field(block: Buffer, name: keyof typeof fields): Buffer {
  const [offset, length] = fields[name];
  return block.subarray(offset, offset + length);
}

/** @returns the text up to the first NUL; bytes after it are an error, because another reader might use them */
function readText(block: Buffer, name: keyof typeof fields): Buffer {
  const bytes = field(block, name);
  const end = bytes.indexOf(0);
  if (end === -1) return bytes;
  if (!isZero(bytes.subarray(end))) throw malformed(`a header has bytes after the end of its ${name}`);
  return bytes.subarray(0, end);
}

/** Octal digits followed by spaces and NULs only: no sign, no base-256, no text that parseInt would ignore. */
function readOctal(block: Buffer, name: keyof typeof fields): number {
  const digits = /^([0-7]+)[ \0]*$/.exec(field(block, name).toString('latin1'))?.[1];
  if (digits === undefined) throw malformed(`a header has no valid ${name}`);
  return Number.parseInt(digits, 8);
}

function checksumOf(block: Buffer): number {
  const [offset, length] = fields.checksum;
  let sum = 0x20 * length;
  for (let at = 0; at < offset; at += 1) sum += block[at] ?? 0;
  for (let at = offset + length; at < blockBytes; at += 1) sum += block[at] ?? 0;
  return sum;
}

/** @returns true if each byte is zero, as in an end block or in padding */
export function isZero(bytes: Uint8Array): boolean {
  for (const byte of bytes) if (byte !== 0) return false;
  return true;
}

/**
 * Parses `LENGTH KEY=VALUE\n` records (POSIX pax, extended header).
 * @param body the complete body of the PAX header, without padding
 * @throws WritError ARCHIVE_MALFORMED for a wrong length, an unknown or repeated key, or an invalid value
 */
export function readPaxRecords(body: Buffer): PaxRecords {
  const values = new Map<string, Buffer>();
  for (let at = 0; at < body.length; ) {
    const record = readPaxRecord(body, at);
    if (values.has(record.key)) throw malformed(`a PAX header has ${record.key} twice`);
    values.set(record.key, record.value);
    at = record.end;
  }
  const size = values.get('size')?.toString('latin1');
  if (size !== undefined && !/^(0|[1-9][0-9]{0,15})$/.test(size))
    throw malformed('a PAX size is not a number');
  return given({ path: values.get('path'), sizeBytes: size === undefined ? undefined : Number(size) });
}

// `mtime` is not used, but tar programs write it into PAX headers.
const knownKeys: ReadonlySet<string> = new Set(['path', 'size', 'mtime']);

function readPaxRecord(body: Buffer, at: number): { key: string; value: Buffer; end: number } {
  const space = body.indexOf(0x20, at);
  const digits = space === -1 ? '' : body.toString('latin1', at, Math.min(space, at + 10));
  const end = at + (/^[1-9][0-9]{0,8}$/.test(digits) ? Number(digits) : Number.NaN);
  // With a wrong length, two readers would find different records.
  if (!(end > space + 1 && end <= body.length && body[end - 1] === 0x0a)) {
    throw malformed('a PAX record has a wrong length');
  }
  const equals = body.indexOf(0x3d, space);
  const key = equals === -1 || equals >= end ? '' : body.toString('latin1', space + 1, equals);
  if (!knownKeys.has(key)) {
    throw malformed(`a PAX header has an unknown key ${JSON.stringify(key.slice(0, 40))}`);
  }
  return { key, value: body.subarray(equals + 1, end - 1), end };
}

/**
 * @param what the rule that the archive breaks, as a clause
 * @returns the error ARCHIVE_MALFORMED
 */
export function malformed(what: string, facts: Record<string, unknown> = {}): WritError {
  return new WritError('ARCHIVE_MALFORMED', `the archive is refused: ${what}`, { facts });
}

function refused(what: string, facts: Record<string, unknown> = {}): WritError {
  return new WritError('ENTRY_REFUSED', `the archive is refused: ${what}`, { facts });
}
