// Keys and signatures of the real openssl, as a second implementation.
import { execFileSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { MetadataKey } from '../../../src/core/tuf/tuf-metadata.js';
import type { TempDir } from '../disk/temp-dir.js';
import { type KeyType, keyKinds, publicText } from '../repository/key-pairs.js';

export const opensslKinds: readonly KeyType[] = ['ed25519', 'ecdsa', 'rsa'];

export interface OpensslKey {
  readonly secretPath: string;
  /** PEM, SubjectPublicKeyInfo. */
  readonly publicPath: string;
  readonly key: MetadataKey;
  /** Command for --signer. */
  readonly signCommand: string;
}

const generate: Readonly<Record<KeyType, readonly string[]>> = {
  ed25519: ['-algorithm', 'ed25519'],
  ecdsa: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  rsa: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
};

/** @param name of its two files in the directory; `kind` by default */
export function makeOpensslKey(dir: TempDir, kind: KeyType, name: string = kind): OpensslKey {
  const secretPath = dir.join(`${name}.pem`);
  const publicPath = dir.join(`${name}.pub.pem`);
  execFileSync('openssl', ['genpkey', ...generate[kind], '-out', secretPath], { stdio: 'ignore' });
  execFileSync('openssl', ['pkey', '-in', secretPath, '-pubout', '-out', publicPath]);
  const text = publicText(kind, createPublicKey(readFileSync(publicPath)));
  const key = { ...keyKinds[kind], keyval: { public: text } };
  return { secretPath, publicPath, key, signCommand: signCommand(kind, secretPath) };
}

function signCommand(kind: KeyType, secretPath: string): string {
  switch (kind) {
    case 'ed25519':
      return `openssl pkeyutl -sign -inkey ${secretPath} -rawin -in "$WRIT_SIGN_FILE"`;
    case 'ecdsa':
      return `openssl dgst -sha256 -sign ${secretPath}`;
    case 'rsa':
      return `openssl dgst -sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:32 -sign ${secretPath}`;
    default:
      return kind satisfies never;
  }
}
