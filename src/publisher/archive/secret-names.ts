// Names of files and directories that keep secrets, or the history of a source. Pure; compares names alone, without regard to
// case, because a copy from another system may have changed it. What a file contains is secret-content's to judge.

/** Endings that editors and people give to copies: the copy of a secret is one. */
const copyEnding = /(?:~|\.(?:bak|old|orig|save|copy|sw[a-p]|tmp|[0-9]))$/;

const privateNames: readonly (readonly [RegExp, string])[] = [
  [/^(?:\.git|\.hg|\.svn|\.jj|\.bzr|_darcs|cvs)$/, 'is where version control keeps its history'],
  [/^\.env(?:rc|[._-].*)?$/, 'looks like a file of secrets'],
  [
    /^(?:[._]netrc|\.pgpass|\.npmrc|\.pypirc|\.git-credentials|\.my(?:login)?\.cnf|\.s3cfg|\.boto|\.dockercfg|\.htpasswd|\.vault-token|\.terraformrc|credentials\.tfrc\.json)$/,
    'looks like a file of passwords',
  ],
  [
    /^(?:\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.oci|\.password-store)$/,
    'looks like a directory of secret keys',
  ],
  [/^\.terraform$|^.*\.tfstate(?:\.backup)?$/, 'looks like a state of Terraform, which has secrets in it'],
  [/^id_(?:rsa|dsa|ecdsa|ed25519|xmss)(?:_sk)?$/, 'looks like a secret key'],
  [/^.+\.(?:pfx|p12|jks|keystore|kdbx|ppk)$/, 'looks like a store of secret keys'],
];

/** Directories that are known by what they are in. */
const privatePaths: readonly (readonly [RegExp, string])[] = [
  [/(?:^|\/)\.config\/(?:gcloud|gh|glab-cli|rclone|sops)$/, 'looks like a directory of secret keys'],
  [/(?:^|\/)\.(?:cargo|gem)\/credentials(?:\.toml)?$/, 'looks like a file of passwords'],
];

/** @returns why the name of this path is that of a secret; undefined: it is not */
export function findSecretName(path: string): string | undefined {
  const whole = path.toLowerCase();
  const name = whole.slice(whole.lastIndexOf('/') + 1);
  const original = name.replace(copyEnding, '');
  const byName = privateNames.find(([pattern]) => pattern.test(original));
  return (byName ?? privatePaths.find(([pattern]) => pattern.test(whole)))?.[1];
}
