import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findSecretName } from '../../../../src/publisher/archive/secret-names.js';

describe('findSecretName', () => {
  const secrets = [
    ...[
      '.git',
      '.Git',
      'sub/.HG',
      '.svn',
      '.jj',
      '.bzr',
      'CVS',
      '.env',
      '.ENV',
      '.env~',
      '.env-prod',
      '.env.local',
    ],
    ...[
      '.envrc',
      '.netrc',
      '_netrc',
      '.NETRC~',
      '.git-credentials',
      '.npmrc',
      '.pypirc',
      '.pgpass',
      '.htpasswd',
    ],
    ...[
      '.my.cnf',
      '.s3cfg',
      '.dockercfg',
      '.vault-token',
      '.ssh',
      '.aws',
      '.azure',
      '.kube',
      '.docker',
      '.gnupg',
    ],
    ...[
      '.password-store',
      '.terraform',
      'terraform.tfstate',
      'prod.tfstate.backup',
      'id_rsa',
      'ID_RSA',
      'id_rsa.bak',
    ],
    ...[
      'id_rsa~',
      'id_ed25519_sk',
      'a/b/id_ecdsa',
      'host.pfx',
      'HOST.P12',
      'store.jks',
      'pw.kdbx',
      'key.ppk',
    ],
    ...['home/.config/gcloud', '.cargo/credentials.toml', '.id_rsa.swp'.slice(1), '.netrc.old'],
  ];
  for (const path of secrets) {
    it(`refuses ${path}`, () => assert.match(findSecretName(path) ?? '', /^(is|looks) /));
  }

  const harmless = [
    ...[
      '.gitignore',
      '.gitattributes',
      'environment',
      'a.env',
      'id_rsa.pub',
      'id_rsa.d',
      'dockerfile',
      'cvs.conf',
    ],
    ...['config/gcloud', 'tfstate', 'ssh', 'pfx', 'kube', 'netrc', 'env', 'views.env.yaml'],
  ];
  for (const path of harmless) it(`takes ${path}`, () => assert.equal(findSecretName(path), undefined));
});
