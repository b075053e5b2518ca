// SPDX-License-Identifier: MIT
// What a server with --token-file wants to hear: from the link (#token=…) or typed once. It stays in this tab and out
// of the address.
const KEY = 'weft.token', IN_LINK = /[#&]token=([^&]+)/;

export function keepToken(token: string): void {
  try { sessionStorage.setItem(KEY, token); } catch { /* then it must be given again */ }
}

export function takeToken(): string | null {
  const given = IN_LINK.exec(location.hash);
  if (!given) { try { return sessionStorage.getItem(KEY); } catch { return null; } }
  let token = given[1];
  try { token = decodeURIComponent(token); } catch { /* not encoded */ }
  keepToken(token);
  history.replaceState(null, '', location.hash.replace(IN_LINK, '').replace(/^&/, '#') || location.pathname);
  return token;
}
