// Where the `http` driver asks: a URL, or a path on a unix socket, with the name of the worker filled in. Pure but
// for the listing of sockets. Never lets a name change the host that a URL means to another part of it.
import { basename } from 'node:path';
import { WritError } from '../../core/errors.js';
import { requireSocketPath, type SocketPlace } from '../../platform/net/unix-socket.js';
import type { Target } from '../contract/driver.js';
import { listByCommand, type MembersOptions } from '../shared/member-command.js';
import { fillPlaceholders, isWorkerName, requireKnownPlaceholders } from '../shared/placeholders.js';
import { listSockets, requireOwnPlace, socketOf } from '../shared/socket-set.js';

export type HttpPlaceOptions = string | { readonly unix: string; readonly path: string };

export interface HttpPlace {
  members(): Promise<readonly string[]>;
  /** @returns in words why nobody can be asked, or whom */
  at(worker: string, target: Target): { readonly url: URL; readonly unixSocket?: string } | string;
  /** Where this worker listens; undefined when that cannot be said. */
  listensAt(worker: string): SocketPlace | undefined;
}

/** @throws WritError CONFIG_INVALID, SOCKET_PATH_TOO_LONG */
export function createHttpPlace(options: HttpPlaceOptions, members?: MembersOptions): HttpPlace {
  return typeof options === 'string' ? urlPlace(options, members) : unixPlace(options, members);
}

const noTarget: Target = { generation: 0, path: '/' };

function urlPlace(text: string, members: MembersOptions | undefined): HttpPlace {
  requireKnownPlaceholders('reset.http', [text]);
  requireOwnPlace('reset.http', text, members);
  const urlOf = (worker: string, target: Target): URL | undefined =>
    plainUrl(fillPlaceholders(text, target, worker));
  // A name that would do for a host and for a port.
  const example = urlOf('1', noTarget);
  if (example === undefined)
    throw new WritError('CONFIG_INVALID', 'reset.http must be a URL without a name, password or fragment');
  return {
    members: async () => (members === undefined ? [example.host] : listByCommand(members)),
    at: (worker, target) => {
      const url = members === undefined || isWorkerName(worker) ? urlOf(worker, target) : undefined;
      return url === undefined ? `${worker} does not fit into its URL` : { url };
    },
    listensAt: (worker) => {
      const url = urlOf(worker, noTarget);
      // Without the brackets of an address of IPv6.
      return url && { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: portOf(url) };
    },
  };
}

/** A name with an @ could turn the host into a user, and send what is said to somebody else. */
function plainUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isPlain = url.username === '' && url.password === '' && url.hash === '';
  return isPlain && /^https?:$/.test(url.protocol) ? url : undefined;
}

function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

function unixPlace(
  { unix, path }: Exclude<HttpPlaceOptions, string>,
  members: MembersOptions | undefined,
): HttpPlace {
  requireSocketPath(unix);
  requireKnownPlaceholders('reset.http.path', [path]);
  requireOwnPlace('reset.http.unix', unix, members);
  return {
    members: () => listSockets(unix, members),
    at: (worker, target) => {
      // The name of a socket goes into the path of a URL too.
      if (!isWorkerName(worker)) return `${worker} cannot be the name of a worker`;
      const url = plainUrl(`http://localhost${fillPlaceholders(path, target, worker)}`);
      if (url === undefined) return `${path} is not a path of a URL`;
      return { url, unixSocket: socketOf(unix, members, worker) };
    },
    listensAt: (worker) =>
      basename(worker) === worker ? { path: socketOf(unix, members, worker) } : undefined,
  };
}
