// What a command may ask of its sandbox: its keys in the configuration file, their defaults, and what they become.
// Owns words and numbers; who builds the sandbox is platform/process/bubblewrap and agent/sandbox.
import { sizeBytes } from '../names.js';
import type { Schema } from './findings.js';

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
  readonly maxMemoryBytes: number;
  readonly maxProcesses: number;
}

/** A command that asks for nothing. */
export const defaultHookBox: HookBox = {
  network: 'no',
  binds: [],
  writable: [],
  userNamespace: 'yes',
  maxMemoryBytes: 1e9,
  maxProcesses: 128,
};

const paths: Schema = {
  type: 'array',
  minItems: 0,
  maxItems: 100,
  uniqueItems: true,
  description: 'a list of 0 to 100 entries, each once',
  items: {
    type: 'string',
    // Without `//`, `/./` and `/../`: what is compared with the state directory must be what is mounted.
    pattern: '^(?!.*//)(?!.*/\\.{1,2}(/|$))/[^\\u0000-\\u001f]+$',
    maxLength: 4000,
    description: 'an absolute path without . and .., as /run/knot-resolver',
  },
};

/** Keys that only a sandbox can grant, beside `memory`. */
export const boxKeys = {
  user: {
    type: ['string', 'integer'],
    pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,31}$',
    minimum: 0,
    maximum: 4_294_967_294,
    description: 'the name or number of a user',
  },
  network: { type: 'boolean', description: 'true or false' },
  binds: paths,
  writable: paths,
  userNamespace: { type: 'boolean', description: 'true or false' },
  processes: {
    type: 'integer',
    minimum: 1,
    maximum: 100_000,
    description: 'a whole number from 1 to 100000',
  },
} as const satisfies Readonly<Record<string, Schema>>;

/** A pattern of more characters is a program. */
export const rejectSchema: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: 1000,
  description: 'a regular expression of at most 1000 characters, as "^ERROR"',
};

/** The keys in a file that schema and rules have accepted. */
export interface HookBoxFile {
  readonly user?: string | number;
  readonly network?: boolean;
  readonly binds?: readonly string[];
  readonly writable?: readonly string[];
  readonly userNamespace?: boolean;
  readonly memory?: string;
  readonly processes?: number;
}

export function buildHookBox(file: HookBoxFile): HookBox {
  const { user, network = false, binds = [], writable = [], userNamespace = true, memory, processes } = file;
  const { maxMemoryBytes, maxProcesses } = defaultHookBox;
  return {
    ...(user === undefined ? {} : { user }),
    network: network ? 'yes' : 'no',
    binds,
    writable,
    userNamespace: userNamespace ? 'yes' : 'no',
    maxMemoryBytes: memory === undefined ? maxMemoryBytes : sizeBytes(memory),
    maxProcesses: processes ?? maxProcesses,
  };
}
