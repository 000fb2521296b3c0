// Words for repositories, releases and archives, as the publisher's commands write them. Pure text.

import { type Digest, digest12 } from '../../core/names.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import { sizeText } from '../../core/size-text.js';
import { counted } from './show-text.js';

/** @returns as `sha256:77b0aa12e1f0`, for people; identity is the full digest */
export function shortDigest(digest: Digest): string {
  return `sha256:${digest12(digest)}`;
}

/** @param hex SHA-256 of a root. @returns its first 16 digits in groups, to be compared by voice */
export function fingerprint(hex: string): string {
  return (hex.slice(0, 16).match(/.{4}/g) ?? []).join(' ');
}

/** @returns as `2027-11-21`, in UTC */
export function isoDay(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}

/** @returns as `'my dir'` where a shell would split it */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** @returns as `2 deltas of 188 B, 190 B, newest base first` */
export function deltasText(deltas: readonly DeltaInfo[]): string {
  const sizes = deltas.map(({ length }) => sizeText(length)).join(', ');
  return `${counted(deltas.length, 'delta')} of ${sizes}, newest base first`;
}

/** What `--json` says of the deltas of a release; nothing in the list where it has none. */
export function deltaDetails(deltas: readonly DeltaInfo[] = []): Record<string, unknown>[] {
  return deltas.map(({ from, digest, length }) => ({ from, digest, bytes: length }));
}
