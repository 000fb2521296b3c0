// Builds the addresses of all pages. Encodes all untrusted parts. Pure.

/** @returns one condition of a host filter, as `state=refused` */
export function condition(key: string, value: string | number): string {
  return `${key}=${String(value).replace(/[\\,]/g, '\\$&')}`;
}

/**
 * Builds the path of the list of hosts that match all conditions. Throws nothing.
 * @param conditions results of `condition`; empty: all hosts
 * @returns the path with the encoded filter, as `/hosts?where=state%3Drefused`; `/hosts` without conditions
 */
export function hostsAddress(conditions: readonly string[] = []): string {
  return conditions.length === 0 ? '/hosts' : `/hosts?${query({ where: conditions.join(',') })}`;
}

/**
 * Builds the path of one page of the list of hosts. Throws nothing.
 * @param where the filter of the requested address; '' for all hosts
 * @param after `next` of the previous page; undefined for the first page
 * @returns the path with the encoded parts that are present, as `/hosts?where=state%3Drefused&after=x`; `/hosts` without any
 */
export function hostsPageAddress(where: string, after?: string): string {
  const asked = query({ where, after });
  return asked === '' ? '/hosts' : `/hosts?${asked}`;
}

/** CSV of all hosts of the filter. */
export function csvAddress(where: string): string {
  const asked = query({ where });
  return asked === '' ? '/v1/hosts.csv' : `/v1/hosts.csv?${asked}`;
}

/**
 * @param key the name or the key id of a host
 * @returns the path of the host's page
 */
export function hostAddress(key: string): string {
  return `/hosts/${encodeURIComponent(key)}`;
}

export interface ReleaseName {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
}

/** @returns the path of the page of one release */
export function releaseAddress({ bundle, channel, serial }: ReleaseName): string {
  return `/releases/${encodeURIComponent(bundle)}/${encodeURIComponent(channel)}/${serial}`;
}

/** CSV of the whole history of a release. */
export function releaseHistoryCsvAddress({ bundle, channel, serial }: ReleaseName): string {
  return `/v1${releaseAddress({ bundle, channel, serial })}/history.csv`;
}

/** CSV of the whole history of a host. */
export function hostHistoryCsvAddress(key: string): string {
  return `/v1${hostAddress(key)}/history.csv`;
}

/**
 * @returns the path of the audit page
 * @param before the id of an entry; the page has the entries before it; undefined: the newest entries
 */
export function logAddress(before?: number): string {
  return before === undefined ? '/log' : `/log?${query({ before: String(before) })}`;
}

/**
 * Restricts the target of a sign-in to a path of this server, because an attacker can choose it in a link. Browsers read `//host`
 * and `/\host` as another server, and remove tabs and newlines before they parse.
 */
export function ownPath(text: string): string {
  return /^\/(?![/\\])[\u0021-\u007e]*$/.test(text) ? text : '/';
}

function query(values: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(values).filter((pair): pair is [string, string] => Boolean(pair[1]));
  return new URLSearchParams(given).toString();
}
