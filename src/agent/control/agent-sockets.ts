// The two sockets of an agent: the control socket, and, where the configuration names a group, one on which that group may
// look. Owns who may connect to which, and what is left out for the group; what is answered is the agent's.
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
  /** As `status.json` has it: without a look at the processes of the host, which a group must not make root repeat. */
  readonly lastLook: () => StatusReport;
}

const maxControlConnections = 64;
const maxReadConnections = 16;
/** Root's own watchers must find room. */
const maxReadWatchers = 8;

/** @throws WritError SOCKET_PATH_TOO_LONG, SOCKET_IN_USE, LISTEN_FAILED of the control socket */
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

/** Policy does not wait for who looks at it: what cannot be opened is said in the log, and the agent runs without it. */
async function openReadSocket(host: Host, options: AgentSocketsOptions): Promise<ControlSocket | undefined> {
  const { config, paths, durable, log, clock } = host;
  try {
    // One that an agent before this left behind would say of this one that it has gone.
    await removeStaleSocket(paths.readSocket, durable);
    if (config.read === undefined) return undefined;
    const { group, detail } = config.read;
    const opened = await openRequestSocket({
      ...{ path: paths.readSocket, version: options.version, log, clock, durable, parse: parseReadRequest },
      ...{ mode: 0o660, gid: resolveGroup(group), maxConnections: maxReadConnections },
      handlers: readHandlers(options, detail),
    });
    log.info({ socket: paths.readSocket, group }, 'read socket open');
    return opened;
  } catch (error) {
    if (!isWritError(error)) throw error;
    log.error({ err: error }, 'the read socket could not be opened; the agent runs without it');
    return undefined;
  }
}

/** @param detail `no`: what commands and workers wrote stays out, for it may tell what a policy holds */
function readHandlers(
  { handlers, lastLook }: AgentSocketsOptions,
  detail: 'yes' | 'no',
): HandlersOf<ReadRequest> {
  const shown = (report: StatusReport): StatusReport => (detail === 'yes' ? report : publicPart(report));
  let watchers = 0;
  return {
    status: async () => shown(lastLook()),
    health: async () => healthResult(shown(lastLook())),
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
