// The sandbox settings of one command, with their defaults. platform/process/bubblewrap and agent/hooks create the sandbox.
import { given } from '../given.js';
import { sizeBytes } from '../names.js';
import type { GroupOf } from './config-keys.js';
import type { sandboxKeys } from './config-schema.js';

/** The sandbox settings of one command. Its members are in the digest of the configuration. */
export interface HookSandboxSettings {
  /** Name or number, never root; absent: the user `nobody` if the agent is root, else the user of the agent. */
  readonly user?: string | number;
  /** `yes`: the network of the host, with every abstract socket. */
  readonly network: 'yes' | 'no';
  /** Read-only paths of the host that the sandbox hides otherwise; the command can connect to sockets among them. */
  readonly binds: readonly string[];
  readonly writable: readonly string[];
  /** `no`: the command sees the real owners of files. Possible only if the agent is root. */
  readonly userNamespace: 'yes' | 'no';
  /** The command may create user namespaces, with all capabilities inside: for a program that creates its own sandbox. */
  readonly canNestNamespaces: boolean;
  readonly maxMemoryBytes: number;
  readonly maxProcesses: number;
}

/** The settings of a command without sandbox keys. */
export const defaultHookSandbox: HookSandboxSettings = {
  network: 'no',
  binds: [],
  writable: [],
  userNamespace: 'yes',
  canNestNamespaces: false,
  maxMemoryBytes: 1e9,
  maxProcesses: 128,
};

type HookSandboxFile = GroupOf<typeof sandboxKeys> & { readonly memory?: string };

/**
 * @param file the keys of a command, validated by schema and rules; `memory` is a size as text, such as 2GB
 * @returns the settings, with the value of `defaultHookSandbox` for each absent key. `user` stays absent if it is absent in the
 *   file. Booleans for `network` and `userNamespace` become `yes` or `no`; `processes` becomes `maxProcesses`, `memory` becomes
 *   bytes. An empty `file` gives a copy of `defaultHookSandbox`. Throws nothing for a validated file.
 */
export function buildHookSandbox(file: HookSandboxFile): HookSandboxSettings {
  const { user, network = false, binds = [], writable = [], userNamespace = true, memory, processes } = file;
  const { nestedNamespaces: canNestNamespaces = false } = file;
  const { maxMemoryBytes, maxProcesses } = defaultHookSandbox;
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
