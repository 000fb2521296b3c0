// Names of files and directories that usually contain secrets, or the history of a source. Pure. Compares only names and
// ignores case, because a copy from another system may have changed it. secret-content judges the content of files.

/** Suffixes that editors and people give to copies, because the copy of a secret is a secret. */
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

/** Directories that only their path identifies. */
const privatePaths: readonly (readonly [RegExp, string])[] = [
  [/(?:^|\/)\.config\/(?:gcloud|gh|glab-cli|rclone|sops)$/, 'looks like a directory of secret keys'],
  [/(?:^|\/)\.(?:cargo|gem)\/credentials(?:\.toml)?$/, 'looks like a file of passwords'],
];

/** @returns why the name of this path shows a secret; undefined where it does not */
export function findSecretName(path: string): string | undefined {
  const whole = path.toLowerCase();
  const name = whole.slice(whole.lastIndexOf('/') + 1);
  const original = name.replace(copyEnding, '');
  const byName = privateNames.find(([pattern]) => pattern.test(original));
  return (byName ?? privatePaths.find(([pattern]) => pattern.test(whole)))?.[1];
}
