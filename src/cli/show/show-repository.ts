// The text of repositories, releases and archives in the publisher's commands. Pure text.

import { given } from '../../core/given.js';
import { type Digest, digest12 } from '../../core/names.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { sizeText } from '../../core/size-text.js';
import type { IgnoredFile } from '../../publisher/repository/ignored-file.js';
import type { ListedRelease } from '../../publisher/repository/listing.js';
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

/** @returns as `'my dir'` when a shell would split it */
export function shellQuote(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}

/** @returns as `2 deltas of 188 B, 190 B, newest base first` */
export function deltasText(deltas: readonly DeltaInfo[]): string {
  const sizes = deltas.map(({ length }) => sizeText(length)).join(', ');
  return `${counted(deltas.length, 'delta')} of ${sizes}, newest base first`;
}

/** @returns from (digest of the base), digest and bytes of each delta, for `--json`; an empty list without deltas */
export function deltaDetails(deltas: readonly DeltaInfo[] = []): Record<string, unknown>[] {
  return deltas.map(({ from, digest, length }) => ({ from, digest, bytes: length }));
}

/** @returns as `dns-edge stable serial 2 2027-11-21 sha256:77b0aa12e1f0` */
export function releaseText({ bundle, channel, serial, revision, manifest }: ReleaseInfo): string {
  const label = revision === '' ? '' : ` ${revision}`;
  return `${bundle} ${channel} serial ${serial}${label} ${shortDigest(manifest.digest)}`;
}

interface ShownRelease extends Pick<ListedRelease, 'role' | 'release'> {
  /** False is printed; undefined when the label of the lines already states it. */
  readonly isLive?: boolean;
  /** The role that signed the release before: only its signer changes. */
  readonly movedFrom?: string;
}

const maxReleasesShown = 50;

/**
 * Formats releases for people, in the given order. Throws nothing.
 * @param label as `signs`; each line begins with it, and with `keeps` in place of `publishes` when only the signer changes
 * @returns one line for each of the first 50 releases, as `  signs  dns-edge stable serial 2 sha256:77b0aa12e1f0`, and a line
 *   with the number of the others; empty without releases. A line ends with the former signer, or states that hosts do not see
 *   the release
 */
export function releaseLines(label: string, releases: readonly ShownRelease[]): string[] {
  const shown = releases.slice(0, maxReleasesShown).map(({ role, release, isLive, movedFrom }) => {
    const isKept = movedFrom !== undefined && label === 'publishes';
    const signer = movedFrom === undefined ? '' : signerText(role, movedFrom);
    const live = isLive === false ? '; hosts do not see it now' : '';
    return `  ${isKept ? 'keeps' : label}  ${releaseText(release)}${signer}${live}`;
  });
  const more = releases.length - shown.length;
  return more === 0 ? shown : [...shown, `  (${counted(more, 'more release')}; --json lists all)`];
}

function signerText(role: string, before: string): string {
  return role === before ? `; signed by new keys of ${role}` : `; signed by ${role}, before by ${before}`;
}

/** @returns each release for `--json`, with its full digest */
export function releaseDetails(releases: readonly ShownRelease[]): Record<string, unknown>[] {
  return releases.map(({ role, release, isLive, movedFrom }) => {
    const { bundle, channel, serial, revision, manifest } = release;
    const more = given({ live: isLive, movedFrom });
    return { role, bundle, channel, serial, revision, manifestDigest: manifest.digest, ...more };
  });
}

/** @returns a line for each file with its cause and code, and with the command `writ repo log`, which shows its releases */
export function leftOutLines(files: readonly IgnoredFile[], repository: string): string[] {
  const command = `writ repo log --repository ${shellQuote(repository)}`;
  return files.map(
    ({ name, cause }) => `  leaves out  ${name}: ${cause.message} [${cause.code}] (${command})`,
  );
}

/** @returns as `holder of dns-team`; a threshold above 1 needs its keys in one command */
export function holdersText(threshold: number, names: readonly string[]): string {
  const holders = names.join(', ');
  return threshold === 1 ? `holder of ${holders}` : `one command with ${threshold} keys of ${holders}`;
}
