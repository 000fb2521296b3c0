// Finds the sockets that listen at an address of this host, from the tables of the kernel, and limits their size.
// socket-holders finds the processes that have these sockets open.
import * as fs from 'node:fs';
import { basename, dirname } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import { readProcText } from './proc-files.js';

/** Address at which a worker listens: the path of a unix socket, or a host and a port. */
export type ListenPlace = { readonly path: string } | { readonly host: string; readonly port: number };

/** A listening TCP socket, with its address as the kernel prints it. */
export interface ListeningRow {
  readonly address: string;
  readonly port: number;
  readonly inode: string;
}

const maxUnixTableBytes = 8_000_000;
const maxTcpTableBytes = 1_000_000;
const chunkBytes = 65_536;

/** @returns inodes of the sockets that accept connections at this address; empty without a listener */
export function findListeningSockets(place: ListenPlace): readonly string[] {
  if ('path' in place) {
    const table = readProcText('/proc/net/unix', maxUnixTableBytes) ?? '';
    return unixInodes(table, (path) => isSamePath(path, place.path));
  }
  const [v4, v6] = [readListeningRows('/proc/net/tcp'), readListeningRows('/proc/net/tcp6')];
  return tcpInodes([...v4, ...v6], place);
}

/** @returns true if an address can belong to this host only, in any network namespace */
export function isLocalPlace(place: ListenPlace): boolean {
  return 'path' in place || /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/.test(place.host);
}

const acceptsConnections = 0x10000;

/** @param table the text of /proc/net/unix. @returns inodes of the listening sockets that were bound to such a path */
export function unixInodes(table: string, isWanted: (path: string) => boolean): string[] {
  return table.split('\n').flatMap((line) => {
    // Num RefCount Protocol Flags Type St Inode Path
    const fields = /^\S+ \S+ \S+ ([0-9A-F]{8}) \S+ \S+ +(\d+) (\/.+)$/.exec(line);
    const [, flags = '', inode = '', path = ''] = fields ?? [];
    const listens = (Number.parseInt(flags, 16) & acceptsConnections) !== 0;
    return listens && isWanted(path) ? [inode] : [];
  });
}

/** Compares real directories, because a path may be bound through a link such as /var/run. */
function isSamePath(bound: string, wanted: string): boolean {
  if (bound === wanted) return true;
  return basename(bound) === basename(wanted) && realDirectory(bound) === realDirectory(wanted);
}

function realDirectory(path: string): string {
  try {
    return fs.realpathSync(dirname(path));
  } catch (error) {
    if (isSystemError(error)) return dirname(path);
    throw error;
  }
}

/** Reads the begin of a table, which lists the listening sockets first; millions of connections may follow. */
function readListeningRows(path: string): ListeningRow[] {
  let text = '';
  try {
    const descriptor = fs.openSync(path, fs.constants.O_RDONLY);
    try {
      const buffer = Buffer.allocUnsafe(chunkBytes);
      for (let length = -1; length !== 0 && text.length < maxTcpTableBytes; ) {
        length = fs.readSync(descriptor, buffer, 0, buffer.length, null);
        text += buffer.toString('latin1', 0, length);
        if (hasConnection(text)) break;
      }
    } finally {
      fs.closeSync(descriptor);
    }
  } catch (error) {
    // The kernel does not support this version of IP.
    if (!isSystemError(error)) throw error;
  }
  return parseListeningRows(text);
}

const listenState = '0A';

function hasConnection(table: string): boolean {
  const last = table.slice(0, table.lastIndexOf('\n')).split('\n').at(-1);
  const state = last?.trim().split(/\s+/)[3];
  return state !== undefined && state !== 'st' && /^[0-9A-F]{2}$/.test(state) && state !== listenState;
}

/** @param table the text of /proc/net/tcp or tcp6. @returns its listening sockets */
export function parseListeningRows(table: string): ListeningRow[] {
  return table.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
    const [address = '', port = ''] = local.split(':');
    if (state !== listenState || !/^\d+$/.test(inode)) return [];
    return [{ address, port: Number.parseInt(port, 16), inode }];
  });
}

/**
 * @param rows of both tables
 * @returns inodes of the sockets that accept a connection to this address: exact ones before those of all addresses
 */
export function tcpInodes(
  rows: readonly ListeningRow[],
  { host, port }: { readonly host: string; readonly port: number },
): readonly string[] {
  const onPort = rows.filter((row) => row.port === port);
  for (const addresses of addressesOf(host)) {
    const found = onPort.filter(({ address }) => addresses.includes(address)).map(({ inode }) => inode);
    if (found.length > 0) return found;
  }
  return [];
}

const anyV4 = '00000000';
const anyV6 = '0'.repeat(32);

/** @returns the addresses of sockets that accept a connection to this host, the most exact ones first */
function addressesOf(host: string): readonly (readonly string[])[] {
  if (host === 'localhost') return [...addressesOf('127.0.0.1'), ...addressesOf('::1')];
  const v4 = v4Hex(host);
  if (v4 !== undefined) return [[v4, mappedHex(v4)], [anyV4], [anyV6]];
  const v6 = v6Hex(host);
  return v6 === undefined ? [] : [[v6], [anyV6]];
}

/** Converts the byte order, because the kernel prints each 32 bits in the order of the processor. */
function inHostOrder(bytes: Buffer): string {
  const values = Array.from({ length: bytes.length / 4 }, (_, index) =>
    new Uint32Array(Uint8Array.from(bytes.subarray(index * 4, index * 4 + 4)).buffer).at(0),
  );
  return values.map((value = 0) => value.toString(16).padStart(8, '0').toUpperCase()).join('');
}

function v4Hex(host: string): string | undefined {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(host)?.slice(1).map(Number);
  return parts === undefined || parts.some((part) => part > 255)
    ? undefined
    : inHostOrder(Buffer.from(parts));
}

function mappedHex(v4: string): string {
  return `${inHostOrder(Buffer.from('00000000000000000000ffff', 'hex'))}${v4}`;
}

function v6Hex(host: string): string | undefined {
  // The URL parser normalizes an address to its shortest form, and rejects invalid ones.
  if (!host.includes(':') || !URL.canParse(`http://[${host}]/`)) return undefined;
  const [head = '', tail] = new URL(`http://[${host}]/`).hostname.slice(1, -1).split('::');
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const [before, after] = [groups(head), groups(tail ?? '')];
  const middle =
    tail === undefined ? [] : Array.from({ length: 8 - before.length - after.length }, () => '0');
  const hex = [...before, ...middle, ...after].map((group) => group.padStart(4, '0')).join('');
  return hex.length === 32 ? inHostOrder(Buffer.from(hex, 'hex')) : undefined;
}
