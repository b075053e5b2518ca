import 'uplot/dist/uPlot.min.css';
import './app.css';
import { App } from './app';
import { TspClient } from './tsp';

// A server that wants a token gets it from the link (#token=…); it stays in this tab and out of the address.
const given = /[#&]token=([^&]+)/.exec(location.hash);
if (given) {
  try { sessionStorage.setItem('weft.token', decodeURIComponent(given[1])); } catch { /* then it must be given again */ }
  history.replaceState(null, '', location.hash.replace(/[#&]token=[^&]+/, '').replace(/^&/, '#') || location.pathname);
}
let token: string | null = given ? decodeURIComponent(given[1]) : null;
try { token ??= sessionStorage.getItem('weft.token'); } catch { /* none */ }

const base = new URL('tsp/api', document.baseURI).pathname;
// For tests and curious people: the parts of the page.
(window as unknown as { weft: App }).weft = new App(new TspClient(base, token));
