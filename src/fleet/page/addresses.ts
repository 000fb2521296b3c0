// Where each page lies: the one place that makes addresses. Everything in them that others wrote is encoded. Pure.

/** @returns one condition of a filter of hosts, as `state=refused` */
export function condition(key: string, value: string | number): string {
  return `${key}=${String(value).replace(/[\\,]/g, '\\$&')}`;
}

/** @param conditions all of them have to hold; of `condition` */
export function hostsAddress(conditions: readonly string[] = []): string {
  return conditions.length === 0 ? '/hosts' : `/hosts?${query({ where: conditions.join(',') })}`;
}

/** @param where of the address that was asked for, as it stands; @param after where the page before ended */
export function hostsPageAddress(where: string, after?: string): string {
  const asked = query({ where, after });
  return asked === '' ? '/hosts' : `/hosts?${asked}`;
}

/** The same hosts, all of them, for a spreadsheet. */
export function csvAddress(where: string): string {
  const asked = query({ where });
  return asked === '' ? '/v1/hosts.csv' : `/v1/hosts.csv?${asked}`;
}

export function hostAddress(key: string): string {
  return `/hosts/${encodeURIComponent(key)}`;
}

export interface ReleaseName {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
}

export function releaseAddress({ bundle, channel, serial }: ReleaseName): string {
  return `/releases/${encodeURIComponent(bundle)}/${encodeURIComponent(channel)}/${serial}`;
}

/** The history of a release, all of it, for a spreadsheet. */
export function releaseHistoryCsvAddress({ bundle, channel, serial }: ReleaseName): string {
  return `/v1${releaseAddress({ bundle, channel, serial })}/history.csv`;
}

/** The history of a host, all of it, for a spreadsheet. */
export function hostHistoryCsvAddress(key: string): string {
  return `/v1${hostAddress(key)}/history.csv`;
}

export function logAddress(before?: number): string {
  return before === undefined ? '/log' : `/log?${query({ before: String(before) })}`;
}

/**
 * Where a sign-in leads back to: a path of this server, whatever somebody put into a link. A browser takes `//host` and
 * `/\host` for another server, and drops tabs and newlines before it looks.
 */
export function ownPath(text: string): string {
  return /^\/(?![/\\])[\u0021-\u007e]*$/.test(text) ? text : '/';
}

function query(values: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(values).filter((pair): pair is [string, string] => Boolean(pair[1]));
  return new URLSearchParams(given).toString();
}
