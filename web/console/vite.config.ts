import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The content security policy of the server permits neither inline scripts and styles nor data: URLs of scripts.
export default defineConfig({
  base: "/console/",
  plugins: [svelte()],
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, reportCompressedSize: false, copyPublicDir: true, emptyOutDir: false },
  // `npm run dev` takes the API from a server on the default port.
  server: { proxy: { "/v1": "http://127.0.0.1:8085", "/console/sign-in": "http://127.0.0.1:8085" } },
});
