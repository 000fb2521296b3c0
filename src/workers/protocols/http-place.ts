// Resolves where the `http` driver sends a request: a URL, or a path on a Unix socket, with the name of the worker inserted. Pure
// except for the listing of sockets. The name of a worker must never change the host or another part of the URL.
import { basename } from 'node:path';
import { WritError } from '../../core/errors.js';
import { requireSocketPath, type SocketPlace } from '../../platform/net/unix-socket.js';
import type { Target } from '../contract/driver.js';
import { listByCommand, type MembersOptions } from '../shared/member-command.js';
import { fillPlaceholders, isWorkerName, requireKnownPlaceholders } from '../shared/placeholders.js';
import { listSockets, requireOwnPlace, socketOf } from '../shared/socket-set.js';

export type HttpPlaceOptions = string | { readonly unix: string; readonly path: string };

export interface HttpEndpoint {
  members(): Promise<readonly string[]>;
  /** @returns the place of the request, or a text with the reason why there is none */
  at(worker: string, target: Target): { readonly url: URL; readonly unixSocket?: string } | string;
  /** Where this worker listens; undefined if unknown. */
  listensAt(worker: string): SocketPlace | undefined;
}

/**
 * Creates the addresses of HTTP requests to workers. Sends no request itself.
 * @param options a URL, or a Unix socket and a path; both may contain placeholders
 * @param members undefined: one worker for a URL, named by its host, and one per socket of `unix`, which may be a glob
 * @returns `at` returns a text instead of an address if the name of the worker does not fit into it
 * @throws WritError CONFIG_INVALID for an unknown placeholder, for `members` without {worker}, and for a URL that is not plain
 *   http or https; SOCKET_PATH_TOO_LONG for the socket
 */
export function createHttpEndpoint(options: HttpPlaceOptions, members?: MembersOptions): HttpEndpoint {
  return typeof options === 'string' ? urlPlace(options, members) : unixPlace(options, members);
}

const noTarget: Target = { generation: 0, path: '/' };

function urlPlace(text: string, members: MembersOptions | undefined): HttpEndpoint {
  requireKnownPlaceholders('reset.http', [text]);
  requireOwnPlace('reset.http', text, members);
  const urlOf = (worker: string, target: Target): URL | undefined =>
    plainUrl(fillPlaceholders(text, target, worker));
  // The example name is valid as a host and as a port.
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
      // Remove the brackets of an IPv6 address.
      return url && { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: portOf(url) };
    },
  };
}

/** Refuses a URL with user information: a name with an @ could make the host a user name, and redirect the request. */
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
): HttpEndpoint {
  requireSocketPath(unix);
  requireKnownPlaceholders('reset.http.path', [path]);
  requireOwnPlace('reset.http.unix', unix, members);
  return {
    members: () => listSockets(unix, members),
    at: (worker, target) => {
      // Check it, because the name of a socket also becomes part of the URL.
      if (!isWorkerName(worker)) return `${worker} cannot be the name of a worker`;
      const url = plainUrl(`http://localhost${fillPlaceholders(path, target, worker)}`);
      if (url === undefined) return `${path} is not a path of a URL`;
      return { url, unixSocket: socketOf(unix, members, worker) };
    },
    listensAt: (worker) =>
      basename(worker) === worker ? { path: socketOf(unix, members, worker) } : undefined,
  };
}
