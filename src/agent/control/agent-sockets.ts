// Opens the two sockets of an agent: the control socket, and a read socket for the group that the configuration names. Decides the
// permissions of each socket and the details that the group does not get. The agent makes the responses.
import { isWritError, WritError } from '../../core/errors.js';
import { parseControlRequest } from '../../core/protocol/control-protocol.js';
import { healthResult, parseReadRequest, type ReadRequest } from '../../core/protocol/read-protocol.js';
import type { StatusReport } from '../../core/status/status.js';
import { removeStaleSocket } from '../../platform/net/unix-socket.js';
import { resolveGroup } from '../../platform/users/group-id.js';
import { publicPart } from '../report/status-file.js';
import type { Host } from '../state/host.js';
import {
  type ControlSocket,
  type HandlersOf,
  openRequestSocket,
  type RequestHandlers,
} from './control-socket.js';

export interface AgentSocketsOptions {
  readonly version: string;
  readonly handlers: RequestHandlers;
  /** The status as in `status.json`. It does not scan the processes of the host, because a group must not cause that work. */
  readonly lastStatus: () => StatusReport;
}

const maxControlConnections = 64;
const maxReadConnections = 16;
/** Leaves connections for the watchers of root. */
const maxReadWatchers = 8;

/**
 * Opens the control socket, with mode 0600 for root, and the read socket for a configured group, with mode 0660.
 * @returns both sockets as one: `close` closes both and resolves after the last connection. Without `read` in the configuration,
 *   or if the read socket cannot be opened, only the control socket is open; the failure is only logged
 * @throws WritError for the control socket alone: SOCKET_PATH_TOO_LONG; PATH_UNSAFE if others can change its directory;
 *   SOCKET_IN_USE if another process listens or the path is no socket; LISTEN_FAILED
 */
export async function openAgentSockets(host: Host, options: AgentSocketsOptions): Promise<ControlSocket> {
  const { paths, durable, log, clock } = host;
  const { version, handlers } = options;
  const control = await openRequestSocket({
    ...{ path: paths.socket, version, log, clock, durable, handlers, parse: parseControlRequest },
    ...{ mode: 0o600, maxConnections: maxControlConnections },
  });
  log.info({ socket: paths.socket }, 'control socket open');
  const read = await openReadSocket(host, options);
  return {
    close: async () => {
      await Promise.all([control.close(), read?.close()]);
    },
  };
}

/** Logs a failure and returns undefined, because the agent must run without the read socket too. */
async function openReadSocket(host: Host, options: AgentSocketsOptions): Promise<ControlSocket | undefined> {
  const { config, paths, durable, log, clock } = host;
  try {
    // Remove the socket of an earlier agent: clients would conclude from it that no agent runs.
    await removeStaleSocket(paths.readSocket, durable);
    if (config.read === undefined) return undefined;
    const { group, detail } = config.read;
    const opened = await openRequestSocket({
      ...{ path: paths.readSocket, version: options.version, log, clock, durable, parse: parseReadRequest },
      ...{ mode: 0o660, gid: resolveGroup(group), maxConnections: maxReadConnections },
      handlers: readHandlers(options, { hasDetails: detail === 'yes' }),
    });
    log.info({ socket: paths.readSocket, group }, 'read socket open');
    return opened;
  } catch (error) {
    if (!isWritError(error)) throw error;
    log.error({ err: error }, 'the read socket could not be opened; the agent runs without it');
    return undefined;
  }
}

/** @param detail.hasDetails false: the output of commands and workers is removed, because it may contain policy */
function readHandlers(
  { handlers, lastStatus }: AgentSocketsOptions,
  { hasDetails }: { readonly hasDetails: boolean },
): HandlersOf<ReadRequest> {
  const shown = (report: StatusReport): StatusReport => (hasDetails ? report : publicPart(report));
  let watchers = 0;
  return {
    status: async () => shown(lastStatus()),
    health: async () => healthResult(shown(lastStatus())),
    watch: async (_, caller) => {
      if (watchers >= maxReadWatchers)
        throw new WritError('AGENT_BUSY', `this agent already has ${maxReadWatchers} watchers of the group`, {
          facts: { expected: maxReadWatchers },
        });
      watchers += 1;
      try {
        const send: typeof caller.send = (answer) =>
          caller.send(answer.type === 'status.result' ? shown(answer) : answer);
        return await handlers.watch({ type: 'watch' }, { ...caller, send });
      } finally {
        watchers -= 1;
      }
    },
  };
}
