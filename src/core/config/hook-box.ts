// What a command may ask of its sandbox, with the defaults. Owns words and numbers; who builds the sandbox is
// platform/process/bubblewrap and agent/hooks.
import { given } from '../given.js';
import { sizeBytes } from '../names.js';
import type { GroupOf } from './config-keys.js';
import type { boxKeys } from './config-schema.js';

/** The sandbox of one command. */
export interface HookBox {
  /** Name or number, never root; left out: nobody for an agent of root, else the agent's own user. */
  readonly user?: string | number;
  /** `yes`: the host's network, and with it every abstract socket. */
  readonly network: 'yes' | 'no';
  /** Paths of the host that are hidden otherwise, read-only; a socket among them can be spoken to. */
  readonly binds: readonly string[];
  readonly writable: readonly string[];
  /** `no`: it sees the owners of files as they are. Only a root agent can do without. */
  readonly userNamespace: 'yes' | 'no';
  /** It may create user namespaces, in which it has every capability: for a command that has a sandbox of its own. */
  readonly canNestNamespaces: boolean;
  readonly maxMemoryBytes: number;
  readonly maxProcesses: number;
}

/** A command that asks for nothing. */
export const defaultHookBox: HookBox = {
  network: 'no',
  binds: [],
  writable: [],
  userNamespace: 'yes',
  canNestNamespaces: false,
  maxMemoryBytes: 1e9,
  maxProcesses: 128,
};

type HookBoxFile = GroupOf<typeof boxKeys> & { readonly memory?: string };

/** @param file the keys of a command that schema and rules have accepted */
export function buildHookBox(file: HookBoxFile): HookBox {
  const { user, network = false, binds = [], writable = [], userNamespace = true, memory, processes } = file;
  const { nestedNamespaces: canNestNamespaces = false } = file;
  const { maxMemoryBytes, maxProcesses } = defaultHookBox;
  return {
    ...given({ user }),
    network: network ? 'yes' : 'no',
    binds,
    writable,
    userNamespace: userNamespace ? 'yes' : 'no',
    canNestNamespaces,
    maxMemoryBytes: memory === undefined ? maxMemoryBytes : sizeBytes(memory),
    maxProcesses: processes ?? maxProcesses,
  };
}
