// Metadata that an attacker signs with stolen keys of a sample repository, under any version.
import * as fs from 'node:fs';
import { openKey } from '../../../src/publisher/keys/key-directory.js';
import { readKeyFile } from '../../../src/publisher/keys/key-file.js';
import { signMetadata } from '../../../src/publisher/keys/signer.js';
import { noPassphrases } from '../repository/ceremony.js';
import { metadataPath, type SampleRepository } from '../repository/sample-repository.js';

export interface Forged {
  /** The file that the attacker changes. */
  readonly from: string;
  readonly to: string;
  /** A key file of the role. */
  readonly key: string;
  readonly members: object;
}

/** Writes metadata with changed members, signed by a stolen key. */
export async function forge(repository: SampleRepository, { from, to, key, members }: Forged): Promise<void> {
  const { signed } = JSON.parse(fs.readFileSync(metadataPath(repository, from), 'utf8'));
  const signer = await openKey(readKeyFile(key)!, noPassphrases);
  fs.writeFileSync(metadataPath(repository, to), await signMetadata({ ...signed, ...members }, [signer]));
}

/** Publishes the newest targets under another version, with stolen keys of targets and of the online roles. */
export async function forgePublishedTargets(repository: SampleRepository, version: number): Promise<void> {
  const to = `${version}.targets.json`;
  const key = `${repository.keys}/targets.key`;
  await forge(repository, { from: '2.targets.json', to, key, members: { version } });
  await forgeOnline(repository, 'targets', version);
}

/** Publishes a version of a role with stolen online keys. */
export async function forgeOnline(
  repository: SampleRepository,
  role: string,
  version: number,
): Promise<void> {
  const { signed } = JSON.parse(fs.readFileSync(metadataPath(repository, 'timestamp.json'), 'utf8'));
  const before: number = signed.meta['snapshot.json'].version;
  const from = `${before}.snapshot.json`;
  const { meta } = JSON.parse(fs.readFileSync(metadataPath(repository, from), 'utf8')).signed;
  const next = role === 'snapshot' ? version : before + 1;
  const listed = role === 'snapshot' ? meta : { ...meta, [`${role}.json`]: { version } };
  const key = (name: string): string => `${repository.keys}/${name}.key`;
  const snapshot = { version: next, meta: listed };
  await forge(repository, { from, to: `${next}.snapshot.json`, key: key('snapshot'), members: snapshot });
  const members = { version: signed.version + 1, meta: { 'snapshot.json': { version: next } } };
  await forge(repository, { from: 'timestamp.json', to: 'timestamp.json', key: key('timestamp'), members });
}
