// Signatures by another program: an HSM, a KMS, a YubiKey, openssl. The operator's command receives the bytes to sign. Its
// output is used only if it verifies under a key that the role lists. Handles no secret; writes only the bytes to sign, in
// a private directory that is removed afterwards.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { keyId, verifySignature } from '../../core/tuf/signature-schemes.js';
import type { MetadataKey, MetadataSignature } from '../../core/tuf/tuf-metadata.js';
import { type CommandResult, runCommand } from '../../platform/process/run-command.js';
import type { Signer } from './signer.js';

export interface ExternalCommand {
  /** The command as typed, for `sh -c`: `openssl pkeyutl -sign -inkey k.pem -rawin -in "$WRIT_SIGN_FILE"`. */
  readonly command: string;
  /** @param role a role name. @returns true if the command may be run to sign this role */
  readonly serves: (role: string) => boolean;
  /** The operator's environment, because such programs need HOME, sockets and tokens. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The working directory of the command; by default that of this process. */
  readonly directory?: string | undefined;
  /** The time from start to signature; people have to find and touch a device. */
  readonly timeoutMs: number;
  /** Receives the program's messages for the operator, as `touch your key`. */
  readonly onStderr?: (text: string) => void;
  readonly signal?: AbortSignal;
}

export const defaultSignerTimeoutMs = 300_000;
/** The hex of an RSA signature of 16,384 bits, with spare bytes for line breaks. */
const maxOutputBytes = 65_536;
/** The passphrases of Writ's own keys, which another program must not receive. */
const withheld = new Set(['WRIT_PASSPHRASE', 'WRIT_NEW_PASSPHRASE']);

interface ExternalRequest {
  readonly role: string;
  /** The role's keys; the signature must verify under one of them. */
  readonly keys: readonly MetadataKey[];
}

/**
 * Creates a signer that runs the command once for each signature. The command receives the bytes on stdin and in the file
 * WRIT_SIGN_FILE, and reads WRIT_SIGN_ROLE and WRIT_SIGN_KEYIDS (separated by spaces). It writes the raw signature (64
 * bytes of Ed25519, DER of ECDSA, RSA-PSS), its hex, or its base64, which key services print.
 * @throws (from sign) WritError SIGNER_FAILED, SIGNER_WRONG, INTERRUPTED
 */
export function createExternalSigner(command: ExternalCommand, request: ExternalRequest): Signer {
  return {
    keys: request.keys,
    sign: async (bytes) => {
      const output = await runSigner(command, request, bytes);
      const signature = findSignature(output, request.keys, bytes);
      if (signature !== undefined) return signature;
      throw new WritError(
        'SIGNER_WRONG',
        `the signature of the command is not from a key of ${request.role}`,
        {
          facts: { role: request.role, command: shortenCommand(command), outputBytes: output.length },
        },
      );
    },
  };
}

async function runSigner(
  command: ExternalCommand,
  { role, keys }: ExternalRequest,
  bytes: Uint8Array,
): Promise<Buffer> {
  const directory = mkdtempSync(join(tmpdir(), 'writ-sign-'));
  const clean = (): void => rmSync(directory, { recursive: true, force: true });
  // After a signal, no later turn of the event loop may run, so the directory is removed in this one.
  command.signal?.addEventListener('abort', clean, { once: true });
  try {
    const file = join(directory, 'bytes');
    writeFileSync(file, bytes, { mode: 0o600, flag: 'wx' });
    const result = await runCommand({
      argv: ['/bin/sh', '-c', command.command],
      env: {
        ...inherited(command.env),
        WRIT_SIGN_FILE: file,
        WRIT_SIGN_ROLE: role,
        WRIT_SIGN_KEYIDS: keys.map(keyId).join(' '),
      },
      input: bytes,
      timeoutMs: command.timeoutMs,
      maxOutputBytes,
      stdoutEncoding: 'latin1',
      ...given({ cwd: command.directory, onStderr: command.onStderr, signal: command.signal }),
    });
    return requireOutput(result, command);
  } finally {
    command.signal?.removeEventListener('abort', clean);
    clean();
  }
}

function inherited(env: ExternalCommand['env']): Record<string, string> {
  const ours = Object.entries(env).filter(([name]) => !withheld.has(name));
  return given(Object.fromEntries(ours)) as Record<string, string>;
}

function requireOutput(result: CommandResult, command: ExternalCommand): Buffer {
  if (result.kind === 'exited' && result.exitCode === 0 && !result.truncated) {
    return Buffer.from(result.stdout, 'latin1');
  }
  const stderr = result.kind === 'not-started' ? {} : { stderr: result.stderr.trim().slice(-500) };
  const code = result.kind === 'aborted' ? 'INTERRUPTED' : 'SIGNER_FAILED';
  throw new WritError(code, `the signer ${endText(result, command)}`, {
    facts: { command: shortenCommand(command), ...stderr },
  });
}

function endText(result: CommandResult, { timeoutMs }: ExternalCommand): string {
  switch (result.kind) {
    case 'exited':
      return result.exitCode === 0 ? 'wrote more than a signature' : `ended with exit ${result.exitCode}`;
    case 'killed':
      return `was killed by ${result.signal}`;
    case 'timed-out':
      return `gave no signature within ${Math.round(timeoutMs / 1000)} s`;
    case 'aborted':
      return 'was ended';
    case 'not-started':
      return `could not be started: ${result.reason}`;
    default:
      return result satisfies never;
  }
}

function shortenCommand({ command }: ExternalCommand): string {
  return command.slice(0, 200);
}

/** The command does not name its key: the key under which the signature verifies is the signer. */
function findSignature(
  output: Buffer,
  keys: readonly MetadataKey[],
  bytes: Uint8Array,
): MetadataSignature | undefined {
  for (const sig of decodeSignatures(output)) {
    const key = keys.find((one) => verifySignature(one, bytes, sig));
    if (key !== undefined) return { keyid: keyId(key), sig };
  }
  return undefined;
}

/**
 * @returns the hex of the output as raw bytes, and where possible as hex and as base64 (with either alphabet); one of them
 *   is the signature
 */
function decodeSignatures(output: Buffer): string[] {
  const text = output.toString('latin1').replace(/\s+/g, '');
  const hex = /^(?:[0-9a-f]{2})+$/i.test(text) ? [text.toLowerCase()] : [];
  const base64 = /^[\w+/-]+={0,2}$/.test(text) ? [Buffer.from(text, 'base64').toString('hex')] : [];
  return [...hex, ...base64, output.toString('hex')];
}
